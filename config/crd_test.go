package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	mcscrd "sigs.k8s.io/mcs-api/config/crd"
	"sigs.k8s.io/yaml"
)

// allCRDs returns every CRD, with the defaults of the API server, by resource name.
func allCRDs(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crds := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, list := range []func() ([]*unstructured.Unstructured, error){
		func() ([]*unstructured.Unstructured, error) { return CRDs(Leader) },
		func() ([]*unstructured.Unstructured, error) { return CRDs(Member) },
		LegacyCRDs,
	} {
		objects, err := list()
		if err != nil {
			t.Fatal(err)
		}
		for _, obj := range objects {
			text, err := yaml.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict(text, crd); err != nil {
				t.Fatalf("%s: %v", obj.GetName(), err)
			}
			apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
			crds[crd.Spec.Names.Plural] = crd
		}
	}
	return crds
}

func TestCRDsOfARole(t *testing.T) {
	cases := map[Role][]string{
		Leader: {
			"clustersets.multicluster.crd.antrea.io",
			"memberclusterannounces.multicluster.crd.antrea.io",
			"resourceexports.multicluster.crd.antrea.io",
			"resourceimports.multicluster.crd.antrea.io",
		},
		Member: {
			"clusterinfoimports.multicluster.crd.antrea.io",
			"clustersets.multicluster.crd.antrea.io",
			"gateways.multicluster.crd.antrea.io",
			"labelidentities.multicluster.crd.antrea.io",
			"serviceexports.multicluster.x-k8s.io",
			"serviceimports.multicluster.x-k8s.io",
		},
	}
	for role, want := range cases {
		crds, err := CRDs(role)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, crd := range crds {
			got = append(got, crd.GetName())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", role, diff)
		}
	}
}

// facts is what the wire fixes about one kind, as a table prints it. A version
// reads "name[+storage][+deprecated]: column, column".
type facts struct {
	Kind, Scope, ShortNames string
	Status                  bool
	Versions                []string
}

func TestCRDsAreThoseOfTheWire(t *testing.T) {
	const clusterSetColumns = "Leader Cluster Namespace .spec.namespace, Total Clusters .status.totalClusters, Ready Clusters .status.readyClusters, Age .metadata.creationTimestamp"
	const importColumns = "Kind .spec.kind, Namespace .spec.namespace, Name .spec.name, Age .metadata.creationTimestamp"
	want := map[string]facts{
		"clustersets": {"ClusterSet", "Namespaced", "", true, []string{
			"v1alpha1+deprecated: " + clusterSetColumns,
			"v1alpha2+storage: " + clusterSetColumns,
		}},
		"memberclusterannounces": {"MemberClusterAnnounce", "Namespaced", "", false, []string{
			"v1alpha1+storage: Cluster ID .clusterID, ClusterSet ID .clusterSetID, Age .metadata.creationTimestamp",
		}},
		"resourceexports": {"ResourceExport", "Namespaced", "", true, []string{
			"v1alpha1+storage: Cluster ID .spec.clusterID, " + importColumns,
		}},
		"resourceimports": {"ResourceImport", "Namespaced", "", true, []string{
			"v1alpha1+storage: " + importColumns,
		}},
		"clusterinfoimports": {"ClusterInfoImport", "Namespaced", "", true, []string{
			"v1alpha1+storage: Cluster ID .spec.clusterID, Service CIDR .spec.serviceCIDR, Age .metadata.creationTimestamp",
		}},
		"gateways": {"Gateway", "Namespaced", "", true, []string{
			"v1alpha1+storage: Gateway IP .gatewayIP, Internal IP .internalIP, Age .metadata.creationTimestamp",
		}},
		"labelidentities": {"LabelIdentity", "Cluster", "", false, []string{
			"v1alpha1+storage: Label .spec.label, ID .spec.id, Age .metadata.creationTimestamp",
		}},
		"clusterclaims": {"ClusterClaim", "Namespaced", "", false, []string{
			"v1alpha2+storage+deprecated: Value .value, Age .metadata.creationTimestamp",
		}},
		"serviceexports": {"ServiceExport", "Namespaced", "svcex svcexport", true, []string{
			"v1alpha1: Age .metadata.creationTimestamp", "v1beta1+storage: Age .metadata.creationTimestamp",
		}},
		"serviceimports": {"ServiceImport", "Namespaced", "svcim svcimport", true, []string{
			"v1alpha1: Type .spec.type, IP .spec.ips, Age .metadata.creationTimestamp",
			"v1beta1+storage: Type .spec.type, IP .spec.ips, Age .metadata.creationTimestamp",
		}},
	}
	got := map[string]facts{}
	for resource, crd := range allCRDs(t) {
		names := crd.Spec.Names
		if names.ListKind != names.Kind+"List" || names.Singular != strings.ToLower(names.Kind) {
			t.Errorf("%s: list kind %q, singular %q", resource, names.ListKind, names.Singular)
		}
		if c := crd.Spec.Conversion; c != nil && c.Strategy != apiextensionsv1.NoneConverter {
			t.Errorf("%s: conversion %q", resource, c.Strategy)
		}
		got[resource] = facts{
			Kind:       names.Kind,
			Scope:      string(crd.Spec.Scope),
			ShortNames: strings.Join(names.ShortNames, " "),
			Status:     statusSubresource(t, crd),
			Versions:   describeVersions(t, crd),
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func statusSubresource(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) bool {
	has := func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Subresources != nil && v.Subresources.Status != nil
	}
	first := has(crd.Spec.Versions[0])
	for _, v := range crd.Spec.Versions {
		if has(v) != first {
			t.Errorf("%s: versions differ about the status subresource", crd.Name)
		}
	}
	return first
}

func describeVersions(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) []string {
	var lines []string
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			t.Errorf("%s: %s is not served", crd.Name, v.Name)
		}
		line := v.Name
		if v.Storage {
			line += "+storage"
		}
		if v.Deprecated {
			line += "+deprecated"
			if v.DeprecationWarning == nil || *v.DeprecationWarning == "" {
				t.Errorf("%s: %s is deprecated without saying what to use", crd.Name, v.Name)
			}
		}
		var columns []string
		for _, c := range v.AdditionalPrinterColumns {
			columns = append(columns, c.Name+" "+c.JSONPath)
		}
		lines = append(lines, line+": "+strings.Join(columns, ", "))
	}
	slices.Sort(lines)
	return lines
}

func TestCRDsPassTheValidationOfTheAPIServer(t *testing.T) {
	for resource, crd := range allCRDs(t) {
		// What the API server fills in before it validates.
		crd.Status.StoredVersions = []string{storageVersion(crd)}
		var internal apiextensions.CustomResourceDefinition
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, &internal, nil); err != nil {
			t.Fatal(err)
		}
		for _, problem := range crdvalidation.ValidateCustomResourceDefinition(t.Context(), &internal) {
			t.Errorf("%s: %v", resource, problem)
		}
	}
}

func storageVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// What peers send is neither refused nor pruned; what the wire forbids is refused.
func TestSchemas(t *testing.T) {
	cases := map[string]struct {
		object   string
		resource string
		refused  string // part of the reason; empty means accepted
		pruned   string // the one field that is dropped; empty means none
	}{
		"a member's form of a ClusterSet": {resource: "clustersets", object: `
apiVersion: multicluster.crd.antrea.io/v1alpha2
kind: ClusterSet
metadata: {name: fleet}
spec:
  clusterID: harbor
  leaders: [{clusterID: tower, server: "https://192.0.2.1:6443", secret: token}]
  namespace: antrea-multicluster
status:
  totalClusters: 1
  conditions: [{type: Ready, status: Unknown, lastTransitionTime: "2030-01-02T03:04:05Z", message: m, reason: r}]
  clusterStatuses: [{clusterID: tower, conditions: [{type: IsLeader, status: "True", lastTransitionTime: "2030-01-02T03:04:05Z"}]}]
  observedGeneration: 1
`},
		"a ClusterSet needs its cluster ID": {resource: "clustersets", refused: "spec.clusterID", object: `
apiVersion: multicluster.crd.antrea.io/v1alpha2
kind: ClusterSet
spec: {leaders: [{clusterID: tower}]}
`},
		"a ClusterSet needs a leader": {resource: "clustersets", refused: "spec.leaders", object: `
apiVersion: multicluster.crd.antrea.io/v1alpha2
kind: ClusterSet
spec: {clusterID: harbor, leaders: []}
`},
		"a ClusterSet has one leader": {resource: "clustersets", refused: "spec.leaders", object: `
apiVersion: multicluster.crd.antrea.io/v1alpha2
kind: ClusterSet
spec: {clusterID: harbor, leaders: [{clusterID: a}, {clusterID: b}]}
`},
		"the old version of a ClusterSet knows no cluster ID": {resource: "clustersets", pruned: "spec.clusterID", object: `
apiVersion: multicluster.crd.antrea.io/v1alpha1
kind: ClusterSet
spec:
  clusterID: harbor
  leaders: [{clusterID: tower, serviceAccount: sa}]
  members: [{clusterID: east, server: "https://192.0.2.2", secret: s, serviceAccount: sa}]
`},
		"the fields of an announce are top level": {resource: "memberclusterannounces", object: `
apiVersion: multicluster.crd.antrea.io/v1alpha1
kind: MemberClusterAnnounce
metadata: {name: member-announce-from-harbor, annotations: {touch-ts: "2030-01-02T03:04:05+01:00"}}
clusterID: harbor
clusterSetID: fleet
leaderClusterID: tower
`},
		"a Service export": {resource: "resourceexports", object: `
apiVersion: multicluster.crd.antrea.io/v1alpha1
kind: ResourceExport
spec:
  clusterID: harbor
  kind: Service
  namespace: shop
  name: cart
  service:
    serviceSpec:
      ports: [{name: http, protocol: TCP, port: 80, targetPort: web, nodePort: 30080, appProtocol: http}, {name: dns, protocol: UDP, port: 53, targetPort: 53}]
status:
  conditions: [{type: Failure, status: "False", reason: ConvergeFailure, message: m, lastTransitionTime: "2030-01-02T03:04:05Z"}]
`},
		"an Endpoints export": {resource: "resourceexports", object: `
apiVersion: multicluster.crd.antrea.io/v1alpha1
kind: ResourceExport
spec:
  kind: Endpoints
  endpoints: {subsets: [{addresses: [{ip: 10.96.7.7}], ports: [{name: http, port: 80, protocol: TCP}]}]}
`},
		"a policy keeps rules that are unknown here": {resource: "resourceexports", object: `
apiVersion: multicluster.crd.antrea.io/v1alpha1
kind: ResourceExport
spec:
  kind: AntreaClusterNetworkPolicy
  name: isolate
  clusterNetworkPolicy:
    tier: securityops
    priority: 5.5
    appliedTo: [{namespaceSelector: {matchLabels: {env: prod}}}]
    ingress: [{action: Drop, from: [{scope: ClusterSet, fieldOfTomorrow: {deep: [1]}}]}]
    egress: []
`},
		"a policy needs a priority": {resource: "resourceexports", refused: "priority", object: `
apiVersion: multicluster.crd.antrea.io/v1alpha1
kind: ResourceExport
spec: {clusterNetworkPolicy: {tier: application}}
`},
		"a priority is a number": {resource: "resourceexports", refused: "priority", object: `
apiVersion: multicluster.crd.antrea.io/v1alpha1
kind: ResourceExport
spec: {clusterNetworkPolicy: {priority: high}}
`},
		"a Service import carries a ServiceImport without a type or a name of its own": {resource: "resourceimports", object: `
apiVersion: multicluster.crd.antrea.io/v1alpha1
kind: ResourceImport
spec:
  clusterID: [harbor]
  kind: ServiceImport
  namespace: shop
  name: cart
  serviceImport:
    metadata: {}
    spec: {type: ClusterSetIP, ips: [10.0.0.1, "fd00::1"], ipFamilies: [IPv4, IPv6], ports: [{name: http, protocol: TCP, port: 80}]}
    status: {clusters: [{cluster: harbor}]}
status:
  clusterStatuses: [{clusterID: harbor, conditions: [{type: Succeeded, status: "True"}]}]
`},
		"the name of an embedded ServiceImport does not travel": {resource: "resourceimports", pruned: "spec.serviceImport.metadata.name", object: `
apiVersion: multicluster.crd.antrea.io/v1alpha1
kind: ResourceImport
spec:
  serviceImport:
    metadata: {name: cart}
    spec: {type: Headless, ports: []}
`},
		"some keys of an import differ in case from the export's": {resource: "resourceimports", object: `
apiVersion: multicluster.crd.antrea.io/v1alpha1
kind: ResourceImport
spec:
  clusterinfo: {clusterID: harbor, serviceCIDR: 10.96.0.0/16, podCIDRs: [10.32.0.0/16], gatewayInfos: [{gatewayIP: 192.0.2.10}], wireGuard: {publicKey: k}}
  clusternetworkpolicy: {priority: 1, ingress: [{action: Allow}]}
  labelIdentity: {label: "ns:a=b&pod:c=d", id: 16777215}
  externalentity: {externalentityspec: {anything: [1]}}
  raw: {data: aGVsbG8=}
`},
		"the number of a label identity is a 32-bit integer": {resource: "labelidentities", refused: "spec.id", object: `
apiVersion: multicluster.crd.antrea.io/v1alpha1
kind: LabelIdentity
spec: {label: x, id: 4294967296}
`},
		"a Gateway": {resource: "gateways", object: `
apiVersion: multicluster.crd.antrea.io/v1alpha1
kind: Gateway
gatewayIP: 192.0.2.10
internalIP: 10.0.0.1
serviceCIDR: 10.96.0.0/16
wireGuard: {publicKey: k}
`},
		"a ClusterInfoImport": {resource: "clusterinfoimports", object: `
apiVersion: multicluster.crd.antrea.io/v1alpha1
kind: ClusterInfoImport
spec: {clusterID: harbor, serviceCIDR: 10.96.0.0/16, gatewayInfos: [{gatewayIP: 192.0.2.10}]}
status: {conditions: [{type: Ready, status: "True"}]}
`},
		"a ClusterClaim needs its value": {resource: "clusterclaims", refused: "value", object: `
apiVersion: multicluster.crd.antrea.io/v1alpha2
kind: ClusterClaim
metadata: {name: id.k8s.io}
`},
	}
	crds := allCRDs(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict([]byte(c.object), obj); err != nil {
				t.Fatal(err)
			}
			pruned, problems := admit(t, crds[c.resource], obj)
			var wantPruned []string
			if c.pruned != "" {
				wantPruned = []string{c.pruned}
			}
			if diff := cmp.Diff(wantPruned, pruned); diff != "" {
				t.Errorf("pruned fields: %s", diff)
			}
			switch {
			case c.refused == "" && len(problems) > 0:
				t.Errorf("refused: %v", problems)
			case c.refused != "" && !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.refused) }):
				t.Errorf("not refused because of %q: %v", c.refused, problems)
			}
		})
	}
}

// admit prunes and validates as the API server does.
func admit(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, obj *unstructured.Unstructured) (pruned, problems []string) {
	t.Helper()
	at := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == obj.GroupVersionKind().Version
	})
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[at].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(&props)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		t.Fatal(err)
	}
	pruned = pruning.PruneWithOptions(obj.Object, structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, problem := range validation.ValidateCustomResource(nil, obj.Object, validator) {
		problems = append(problems, problem.Error())
	}
	return pruned, problems
}

// An installer compares these before it replaces a CRD of the MCS API.
func TestMCSCRDsNameTheirRelease(t *testing.T) {
	for _, resource := range []string{"serviceexports", "serviceimports"} {
		labels := allCRDs(t)[resource].Labels
		for _, label := range []string{mcscrd.ReleaseVersionLabel, mcscrd.CustomResourceDefinitionSchemaRevisionLabel} {
			if labels[label] == "" {
				t.Errorf("%s: no label %s", resource, label)
			}
		}
	}
}
