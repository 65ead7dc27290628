package stored

import (
	"bytes"
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Identity is what an owner reference has to meet: the garbage collector asks for
// the kind and name, in the dependent's Namespace or of the whole cluster, and
// compares the UID.
type Identity struct {
	Group     string
	Kind      string
	Namespace string // of the object; empty in a reference
	Name      string
	UID       string
}

// Kin is what a value says about its object's descent.
type Kin struct {
	Identity
	Owners []Identity
	// Read is false when the value is encrypted, or no object.
	Read bool
}

// ReadKin decodes as little as it can: it runs for every object of a cluster.
func ReadKin(value []byte) Kin {
	switch {
	case bytes.HasPrefix(value, encryptedMagic):
		return Kin{}
	case bytes.HasPrefix(value, protobufMagic):
		var envelope runtime.Unknown
		var partial metav1.PartialObjectMetadata
		if envelope.Unmarshal(value[len(protobufMagic):]) != nil || partial.Unmarshal(envelope.Raw) != nil {
			return Kin{}
		}
		return kin(envelope.APIVersion, envelope.Kind, partial.Namespace, partial.Name, string(partial.UID), partial.OwnerReferences)
	}
	var o struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name            string                  `json:"name"`
			Namespace       string                  `json:"namespace"`
			UID             string                  `json:"uid"`
			OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
		} `json:"metadata"`
	}
	if len(value) == 0 || value[0] != '{' || json.Unmarshal(value, &o) != nil {
		return Kin{}
	}
	return kin(o.APIVersion, o.Kind, o.Metadata.Namespace, o.Metadata.Name, o.Metadata.UID, o.Metadata.OwnerReferences)
}

func kin(apiVersion, kind, namespace, name, uid string, owners []metav1.OwnerReference) Kin {
	k := Kin{Identity: Identity{Group: group(apiVersion), Kind: kind, Namespace: namespace, Name: name, UID: uid}, Read: true}
	for _, o := range owners {
		k.Owners = append(k.Owners, Identity{Group: group(o.APIVersion), Kind: o.Kind, Name: o.Name, UID: string(o.UID)})
	}
	return k
}

// group of an apiVersion: versions of a kind are converted into one another, so
// they do not tell objects apart.
func group(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}
