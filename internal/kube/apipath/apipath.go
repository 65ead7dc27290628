// Package apipath reads the paths of requests to a Kubernetes API server, for
// whoever sees requests pass and knows nothing else of them.
package apipath

import "strings"

// Target is the resource a path of the Kubernetes API is about, with the
// subresource if there is one, and whether it names one object:
//
//	/api/v1/namespaces/shop/services/cart           services         true
//	/apis/GROUP/v1/namespaces/shop/things/x/status  things/status    true
//	/apis/GROUP/v1/things                           things           false
//	/api/v1/namespaces/shop                         namespaces       true
//
// What is no such path is discovery, which has no resource: "".
func Target(path string) (resource string, named bool) {
	resource, rest, _ := strings.Cut(versioned(path), "/")
	name, sub, _ := strings.Cut(rest, "/")
	if inside, rest, ok := strings.Cut(sub, "/"); resource == "namespaces" && sub != "" && (ok || inside != "status" && inside != "finalize") {
		resource = inside
		name, sub, _ = strings.Cut(rest, "/")
	}
	if sub != "" {
		resource += "/" + sub
	}
	return resource, name != ""
}

// versioned is what follows the version in a path, empty if there is none. A
// server may have a path of its own in front, and a Namespace may be named
// "apis": whichever root comes first is the root.
func versioned(path string) string {
	const core, groups = "/api/v1/", "/apis/"
	atCore, atGroups := strings.Index(path, core), strings.Index(path, groups)
	if atCore >= 0 && (atGroups < 0 || atCore < atGroups) {
		return path[atCore+len(core):]
	}
	if atGroups < 0 {
		return ""
	}
	_, path, _ = strings.Cut(path[atGroups+len(groups):], "/") // the group
	_, path, _ = strings.Cut(path, "/")                        // the version
	return path
}
