package stored

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-dev/lockstep/internal/plan/replica/selection"
)

// What values begin with.
var (
	// protobufMagic stands before a runtime.Unknown (k8s.io/apimachinery,
	// pkg/runtime/serializer/protobuf).
	protobufMagic = []byte("k8s\x00")
	// encryptedMagic stands before ciphertext (k8s.io/apiserver,
	// pkg/storage/value: "k8s:enc:<provider>:v1:<key>:").
	encryptedMagic = []byte("k8s:enc:")
)

// Marks of an object that say whose it is.
const (
	clusterLabel    = "cluster.x-k8s.io/cluster-name"
	scopeAnnotation = "baremetal.cluster.io/system-agent-auth-scope"
)

// ErrEncrypted: the value is ciphertext, which only an API server with the keys
// can read.
var ErrEncrypted = errors.New("the value is encrypted")

// Object is the readable part of a value.
type Object struct {
	Meta metav1.ObjectMeta
	// JSON is the whole object by its top-level fields; nil when the value is
	// protobuf, of which only the metadata can be read without the kind.
	JSON map[string]json.RawMessage
	// body is what follows the metadata of a protobuf value, undecoded.
	body []byte
}

// Read decodes a value. The error is ErrEncrypted, or says what is wrong with
// the value.
func Read(value []byte) (Object, error) {
	switch {
	case bytes.HasPrefix(value, encryptedMagic):
		return Object{}, ErrEncrypted
	case bytes.HasPrefix(value, protobufMagic):
		return readProtobuf(value[len(protobufMagic):])
	default:
		return readJSON(value)
	}
}

func readProtobuf(value []byte) (Object, error) {
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(value); err != nil {
		return Object{}, fmt.Errorf("the value is no object: %w", err)
	}
	// Every stored kind has its metadata in field 1, as the partial kind has.
	var partial metav1.PartialObjectMetadata
	if err := partial.Unmarshal(envelope.Raw); err != nil {
		return Object{}, fmt.Errorf("the value has no metadata: %w", err)
	}
	return Object{Meta: partial.ObjectMeta, body: withoutFirstField(envelope.Raw)}, nil
}

func readJSON(value []byte) (Object, error) {
	var o Object
	if err := json.Unmarshal(value, &o.JSON); err != nil {
		return Object{}, fmt.Errorf("the value is no object: %w", err)
	}
	if err := json.Unmarshal(o.JSON["metadata"], &o.Meta); err != nil {
		return Object{}, fmt.Errorf("the value has no metadata: %w", err)
	}
	return o, nil
}

// Facts is whose an object is. It looks for the marks' names before it decodes
// anything: most objects carry none, and this runs for every change.
func Facts(value []byte) selection.Facts {
	if bytes.HasPrefix(value, encryptedMagic) {
		return selection.Facts{}
	}
	if !bytes.Contains(value, []byte(clusterLabel)) && !bytes.Contains(value, []byte(scopeAnnotation)) {
		return selection.Facts{Read: true}
	}
	o, err := Read(value)
	if err != nil {
		return selection.Facts{}
	}
	return selection.Facts{
		Read:        true,
		Cluster:     o.Meta.Labels[clusterLabel],
		GlobalScope: o.Meta.Annotations[scopeAnnotation] == "global",
	}
}

// withoutFirstField cuts the first field, which holds the metadata, from a
// protobuf message. It returns all of it when that is not how it begins.
func withoutFirstField(message []byte) []byte {
	const tag = 1<<3 | 2 // field 1, length-delimited
	if len(message) == 0 || message[0] != tag {
		return message
	}
	length, size := uvarint(message[1:])
	if size == 0 || uint64(len(message)) < 1+uint64(size)+length {
		return message
	}
	return message[1+uint64(size)+length:]
}

// uvarint reads a protobuf length; size is 0 when there is none.
func uvarint(b []byte) (value uint64, size int) {
	for i, c := range b {
		if i == 5 {
			return 0, 0
		}
		value |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return value, i + 1
		}
	}
	return 0, 0
}
