package stored

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Life is what a value says about the end of its object: whose it is, whether it
// is being deleted, and what holds it back.
type Life struct {
	Kin
	// Blocking is as long as Owners: that owner's foreground deletion waits for
	// this object (blockOwnerDeletion).
	Blocking []bool
	// Controller is the index in Owners of the one that manages it; -1: nobody does.
	Controller int
	Deleting   bool
	Finalizers []string
}

// ReadLife reads more than ReadKin, for whoever predicts deletions.
func ReadLife(value []byte) Life {
	apiVersion, kind, meta, ok := readMeta(value)
	if !ok {
		return Life{Controller: -1}
	}
	life := Life{
		Kin:        kin(apiVersion, kind, meta.Namespace, meta.Name, string(meta.UID), meta.OwnerReferences),
		Controller: -1, Deleting: meta.DeletionTimestamp != nil, Finalizers: meta.Finalizers,
	}
	for i, owner := range meta.OwnerReferences {
		life.Blocking = append(life.Blocking, owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion)
		if owner.Controller != nil && *owner.Controller {
			life.Controller = i
		}
	}
	return life
}

func readMeta(value []byte) (apiVersion, kind string, meta metav1.ObjectMeta, ok bool) {
	switch {
	case bytes.HasPrefix(value, encryptedMagic):
		return "", "", meta, false
	case bytes.HasPrefix(value, protobufMagic):
		var envelope runtime.Unknown
		var partial metav1.PartialObjectMetadata
		if envelope.Unmarshal(value[len(protobufMagic):]) != nil || partial.Unmarshal(envelope.Raw) != nil {
			return "", "", meta, false
		}
		return envelope.APIVersion, envelope.Kind, partial.ObjectMeta, true
	}
	var partial metav1.PartialObjectMetadata
	if len(value) == 0 || value[0] != '{' || json.Unmarshal(value, &partial) != nil {
		return "", "", meta, false
	}
	return partial.APIVersion, partial.Kind, partial.ObjectMeta, true
}

// Raw is the message of a protobuf value, for whoever knows its kind; nil when the
// value is none.
func Raw(value []byte) []byte {
	var envelope runtime.Unknown
	if !bytes.HasPrefix(value, protobufMagic) || bytes.HasPrefix(value, encryptedMagic) || envelope.Unmarshal(value[len(protobufMagic):]) != nil {
		return nil
	}
	return envelope.Raw
}
