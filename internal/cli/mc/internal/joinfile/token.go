package joinfile

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
)

const tokenNote = "# Token of a member. Whoever has it acts as that cluster; keep it secret.\n---\n"

// ParseToken reads the manifest of a token Secret.
func ParseToken(data []byte) (*corev1.Secret, error) {
	documents, err := split(data)
	if err != nil {
		return nil, err
	}
	if len(documents) != 1 || !documents[0].isSecret() {
		return nil, errors.New("it must hold exactly one v1 Secret")
	}
	return documents[0].secret()
}

// RenderToken is the manifest of a token Secret, ready to be applied in a
// member: the name, all data, type Opaque, the cluster ID it is bound to if the
// Secret is annotated with it, and nothing that ties it to the leader cluster.
func RenderToken(secret *corev1.Secret) ([]byte, error) {
	body, err := yaml.Marshal(struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metadata          `json:"metadata"`
		Data            map[string][]byte `json:"data"`
		Type            corev1.SecretType `json:"type"`
	}{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		Metadata: metadata{Name: secret.Name, Annotations: Bound(secret)},
		Data:     secret.Data,
		Type:     corev1.SecretTypeOpaque,
	})
	return append([]byte(tokenNote), body...), err
}

// metadata is what a manifest needs of an object's.
type metadata struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Bound is the annotation of a token Secret with the cluster ID it is bound to;
// nil when it does not tell, as those of upstream do not.
func Bound(secret *corev1.Secret) map[string]string {
	id := secret.Annotations[v1alpha1.AnnotationClusterID]
	if id == "" {
		return nil
	}
	return map[string]string{v1alpha1.AnnotationClusterID: id}
}

func (d document) isSecret() bool {
	return d.kind == "Secret" && d.version == "v1"
}

func (d document) secret() (*corev1.Secret, error) {
	var secret corev1.Secret
	if err := yaml.Unmarshal(d.json, &secret); err != nil {
		return nil, fmt.Errorf("document %d is no valid Secret: %w", d.number, err)
	}
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
	if secret.Name == "" {
		return nil, errors.New("the Secret has no metadata.name")
	}
	return &secret, CheckToken(&secret)
}

// CheckToken tells why a Secret cannot serve as a member's credential.
func CheckToken(secret *corev1.Secret) error {
	if len(secret.Data[v1alpha1.TokenSecretTokenKey]) == 0 {
		return fmt.Errorf("no key %q in Secret %q", v1alpha1.TokenSecretTokenKey, secret.Name)
	}
	ca, found := secret.Data[v1alpha1.TokenSecretCAKey]
	if !found {
		return fmt.Errorf("no key %q in Secret %q", v1alpha1.TokenSecretCAKey, secret.Name)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(ca) {
		block, _ := pem.Decode(ca)
		if block == nil {
			return fmt.Errorf("key %q of Secret %q holds no PEM block", v1alpha1.TokenSecretCAKey, secret.Name)
		}
		return fmt.Errorf("key %q of Secret %q holds no certificate", v1alpha1.TokenSecretCAKey, secret.Name)
	}
	return nil
}
