package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

const (
	// ManagedByLabel with the value ManagedBy is on every manifest and CRD. It is
	// the proof that an object came from here and may be replaced or removed.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	ManagedBy      = "lockstep"

	// ConfigHashAnnotation on the Pods of a controller names the configuration
	// they were started with, so that a new one replaces them.
	ConfigHashAnnotation = "multicluster.lockstep.dev/config-hash"
)

// Options are what may differ from the manifests as they are. The zero value
// renders them unchanged.
type Options struct {
	// Namespace of the controller; for a leader also the common area. Empty
	// means antrea-multicluster for a leader and kube-system for a member.
	Namespace string
	// Image of the controller. Empty means lockstep:latest.
	Image string
	// Replicas of the controller, of which one leads. Zero means 2.
	Replicas int32
	// Configure changes the configuration file of the controller. Nil keeps
	// that of the manifests.
	Configure func(*v1alpha1.MultiClusterConfig)
	// Admission installs the webhook configurations as well: from then on the API
	// server asks the controller about writes. Its replicas can answer in any case.
	Admission bool
	// Verbose makes the controller log what only a developer wants to know as well.
	Verbose bool
	// Pod changes whatever else is to differ about the Pods of the controller:
	// resources, tolerations, pull secrets. It is called last; nil changes nothing.
	Pod func(*corev1.PodSpec)
}

// Render returns all objects of a role in the order in which they have to be
// created.
//
// Names are those of the wire. Cluster-scoped objects of a controller outside
// its role's default Namespace end in that Namespace, so that two
// installations in one cluster never share a binding.
func Render(role Role, options Options) ([]*unstructured.Unstructured, error) {
	texts, err := manifests(role, options.Admission)
	if err != nil {
		return nil, err
	}
	if options.Namespace == "" {
		options.Namespace = defaultNamespace(role)
	}
	if err := options.validate(); err != nil {
		return nil, fmt.Errorf("cannot render the manifests of the %s: %w", role, err)
	}

	r := renderer{Options: options}
	if options.Namespace != defaultNamespace(role) {
		r.suffix = "-" + options.Namespace
	}
	objects, err := CRDs(role)
	if err != nil {
		return nil, err
	}
	typed := []object{}
	for name, text := range texts {
		obj, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		typed = append(typed, obj)
	}
	if role == Member && !madeByKubernetes(options.Namespace) {
		typed = append(typed, &corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{ManagedByLabel: ManagedBy}},
		})
	}
	if err := r.place(typed); err != nil {
		return nil, err
	}
	for _, obj := range typed {
		plain, err := toUnstructured(obj)
		if err != nil {
			return nil, err
		}
		objects = append(objects, plain)
	}
	sortForCreation(objects)
	return objects, nil
}

func defaultNamespace(role Role) string {
	if role == Leader {
		return v1alpha1.DefaultLeaderNamespace
	}
	return v1alpha1.DefaultMemberNamespace
}

// madeByKubernetes tells the Namespaces that exist in every cluster. They are
// not ours to make, and never ours to remove.
func madeByKubernetes(namespace string) bool {
	return slices.Contains([]string{
		metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease,
	}, namespace)
}

// validate reports all problems together.
func (o Options) validate() error {
	var problems []error
	for _, problem := range validation.IsDNS1123Label(o.Namespace) {
		problems = append(problems, fmt.Errorf("namespace %q: %s", o.Namespace, problem))
	}
	if strings.ContainsAny(o.Image, " \t\n") {
		problems = append(problems, fmt.Errorf("image %q contains white space", o.Image))
	}
	if o.Replicas < 0 {
		problems = append(problems, fmt.Errorf("replicas %d is negative", o.Replicas))
	}
	return errors.Join(problems...)
}

// object is a manifest after decoding.
type object interface {
	runtime.Object
	metav1.Object
}

// renderer carries what the objects of one installation have in common.
type renderer struct {
	Options
	// suffix of the names of cluster-scoped objects.
	suffix string
}

// place puts the objects of one installation where the options say.
func (r renderer) place(objects []object) error {
	var hash string
	for _, obj := range objects {
		if configMap, ok := obj.(*corev1.ConfigMap); ok {
			var err error
			if hash, err = r.configure(configMap); err != nil {
				return err
			}
		}
	}
	for _, obj := range objects {
		switch obj := obj.(type) {
		case *corev1.Namespace:
			obj.Name = r.Namespace
			continue
		case *rbacv1.ClusterRole:
			obj.Name += r.suffix
			r.ownConfigurations(obj.Rules)
			continue
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			r.serve(&obj.ObjectMeta)
			for i := range obj.Webhooks {
				r.lead(&obj.Webhooks[i].ClientConfig, obj.Webhooks[i].NamespaceSelector)
			}
			continue
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			r.serve(&obj.ObjectMeta)
			for i := range obj.Webhooks {
				r.lead(&obj.Webhooks[i].ClientConfig, obj.Webhooks[i].NamespaceSelector)
			}
			continue
		case *rbacv1.ClusterRoleBinding:
			obj.Name += r.suffix
			obj.RoleRef.Name += r.suffix
			r.bind(obj.Subjects)
			continue
		case *rbacv1.RoleBinding:
			r.bind(obj.Subjects)
		case *appsv1.Deployment:
			r.deploy(&obj.Spec, hash)
		case *corev1.ServiceAccount, *corev1.ConfigMap, *corev1.Secret, *corev1.Service, *rbacv1.Role, *policyv1.PodDisruptionBudget:
		default:
			return fmt.Errorf("cannot place %T %q: the renderer does not know its kind", obj, obj.GetName())
		}
		obj.SetNamespace(r.Namespace)
	}
	return nil
}

func (r renderer) bind(subjects []rbacv1.Subject) {
	for i := range subjects {
		subjects[i].Namespace = r.Namespace
	}
}

func (r renderer) deploy(spec *appsv1.DeploymentSpec, configHash string) {
	if r.Replicas > 0 {
		spec.Replicas = &r.Replicas
	}
	metav1.SetMetaDataAnnotation(&spec.Template.ObjectMeta, ConfigHashAnnotation, configHash)
	if r.Image != "" {
		for i := range spec.Template.Spec.Containers {
			spec.Template.Spec.Containers[i].Image = r.Image
		}
	}
	if r.Verbose {
		for i := range spec.Template.Spec.Containers {
			spec.Template.Spec.Containers[i].Args = append(spec.Template.Spec.Containers[i].Args, "--verbose")
		}
	}
	if r.Pod != nil {
		r.Pod(&spec.Template.Spec)
	}
}

// probedPort is where the probes in the manifests ask, webhookPort where the
// Service of the webhooks leads.
const (
	probedPort  = ":8080"
	webhookPort = 9443
)

// configure applies Configure to the configuration file and returns its hash.
func (r renderer) configure(configMap *corev1.ConfigMap) (string, error) {
	text := configMap.Data[v1alpha1.ControllerConfigKey]
	if r.Configure != nil {
		var settings v1alpha1.MultiClusterConfig
		if err := yaml.UnmarshalStrict([]byte(text), &settings); err != nil {
			return "", fmt.Errorf("ConfigMap %q, key %q: %w", configMap.Name, v1alpha1.ControllerConfigKey, err)
		}
		r.Configure(&settings)
		if address := settings.Health.HealthProbeBindAddress; address != "" && !strings.HasSuffix(address, probedPort) {
			return "", fmt.Errorf("cannot set health.healthProbeBindAddress to %q: the probes of the Pods ask port 8080, so that they would never be ready; let it end in %s", address, probedPort)
		}
		if port := settings.Webhook.Port; port != nil && *port != webhookPort {
			return "", fmt.Errorf("cannot set webhook.port to %d: the Service of the webhooks leads to port %d, so that every write of a member would be refused; leave it out", *port, webhookPort)
		}
		changed, err := yaml.Marshal(settings)
		if err != nil {
			return "", err
		}
		text = string(changed)
		configMap.Data[v1alpha1.ControllerConfigKey] = text
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8]), nil
}

// creationOrder lists every kind that is installed. Each needs only those
// before it.
var creationOrder = []string{
	"Namespace",
	"CustomResourceDefinition",
	"ServiceAccount",
	"ClusterRole",
	"ClusterRoleBinding",
	"Role",
	"RoleBinding",
	"ConfigMap",
	"Secret",
	"Service",
	"PodDisruptionBudget",
	"Deployment",
	// Last to come and first to go, or they would ask for a controller that is not there.
	"MutatingWebhookConfiguration",
	"ValidatingWebhookConfiguration",
}

// sortForCreation orders objects by creationOrder, then by name.
func sortForCreation(objects []*unstructured.Unstructured) {
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(
			cmp.Compare(slices.Index(creationOrder, a.GetKind()), slices.Index(creationOrder, b.GetKind())),
			cmp.Compare(a.GetName(), b.GetName()),
		)
	})
}

// decode reads a manifest into its type and refuses unknown fields.
func decode(text []byte) (object, error) {
	obj, _, err := decoder.Decode(text, nil, nil)
	if err != nil {
		return nil, err
	}
	placed, ok := obj.(object)
	if !ok {
		return nil, fmt.Errorf("%T has no metadata", obj)
	}
	return placed, nil
}

var decoder = newDecoder()

func newDecoder() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, policyv1.AddToScheme, admissionregistrationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // a kind registered twice with different types: a mistake in this list
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

// toUnstructured drops what the Go types add to a manifest: an empty status
// would make us its owner, and the empty spec of a Namespace is in no file.
func toUnstructured(obj object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("%T %q: %w", obj, obj.GetName(), err)
	}
	delete(content, "status")
	if spec, ok := content["spec"].(map[string]any); ok && len(spec) == 0 {
		delete(content, "spec")
	}
	return &unstructured.Unstructured{Object: content}, nil
}
