package stored

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reason says in which way the standby's value differs from the primary's. The
// first that holds is told: they are in the order of the damage they can do.
type Reason string

// The reasons.
const (
	// DeletingOnStandby: marked for deletion on the standby only. Whatever ends
	// the finalizers there deletes the object, and its machine with it (D-13).
	DeletingOnStandby Reason = "deletionTimestamp only on the standby"
	// DeletingOnPrimary: marked for deletion on the primary only.
	DeletingOnPrimary Reason = "deletionTimestamp only on the primary"
	// OtherUID: two different objects under one key (D-14).
	OtherUID Reason = "another object: the UIDs differ"
	// OtherOwners: the garbage collectors see different owners (D-14).
	OtherOwners Reason = "ownerReferences differ"
	// OtherFinalizers: a deletion would end at another time.
	OtherFinalizers Reason = "finalizers differ"
	// OtherSpec: what is wanted differs.
	OtherSpec Reason = "spec differs"
	// OtherStatus: nothing but what was observed differs.
	OtherStatus Reason = "status differs"
	// OtherMetadata: labels, annotations or other metadata.
	OtherMetadata Reason = "metadata differs"
	// OtherContent: some other part, or one that cannot be told without the kind.
	OtherContent Reason = "content differs"
	// OtherEncoding: equal when read, different as bytes.
	OtherEncoding Reason = "encoding differs"
	// Encrypted: different ciphertext. It says nothing about the object.
	Encrypted Reason = "encrypted values differ"
	// Undecodable: one side holds no object.
	Undecodable Reason = "undecodable"
)

// Differs tells the reason why two values of one key differ. It must not be
// asked about equal ones.
func Differs(primary, standby []byte) Reason {
	p, errP := Read(primary)
	s, errS := Read(standby)
	switch {
	case errors.Is(errP, ErrEncrypted) || errors.Is(errS, ErrEncrypted):
		return Encrypted
	case errP != nil || errS != nil:
		return Undecodable
	}
	if reason := livesDiffer(p.Meta, s.Meta); reason != "" {
		return reason
	}
	return contentDiffers(p, s)
}

// livesDiffer compares what decides about life and death of an object.
func livesDiffer(p, s metav1.ObjectMeta) Reason {
	switch {
	case p.DeletionTimestamp == nil && s.DeletionTimestamp != nil:
		return DeletingOnStandby
	case p.DeletionTimestamp != nil && s.DeletionTimestamp == nil:
		return DeletingOnPrimary
	case p.UID != s.UID:
		return OtherUID
	case !reflect.DeepEqual(p.OwnerReferences, s.OwnerReferences):
		return OtherOwners
	case !slices.Equal(p.Finalizers, s.Finalizers):
		return OtherFinalizers
	}
	return ""
}

func contentDiffers(p, s Object) Reason {
	sameMeta := reflect.DeepEqual(p.Meta, s.Meta)
	if p.JSON == nil || s.JSON == nil {
		switch sameBody := p.JSON == nil && s.JSON == nil && bytes.Equal(p.body, s.body); {
		case !sameBody:
			return OtherContent
		case !sameMeta:
			return OtherMetadata
		}
		return OtherEncoding
	}
	fields := maps.Clone(p.JSON)
	maps.Copy(fields, s.JSON)
	delete(fields, "metadata")
	differ := map[string]bool{}
	for field := range fields {
		if !sameJSON(p.JSON[field], s.JSON[field]) {
			differ[field] = true
		}
	}
	switch {
	case differ["spec"]:
		return OtherSpec
	case len(differ) > 1 || len(differ) == 1 && !differ["status"]:
		return OtherContent
	case differ["status"]:
		return OtherStatus
	case !sameMeta:
		return OtherMetadata
	}
	return OtherEncoding
}

func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}
