package fleet

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha1"
	"github.com/lockstep-dev/lockstep/config"
)

// Names of the credential that all members shared before v2.7.
const (
	SharedAccount = "antrea-mc-member-access-sa"
	SharedBinding = "antrea-mc-member-cluster-rolebinding"
	SharedSecret  = "antrea-mc-member-access-token"
)

// SharedCredential makes, in a common area, the credential of before v2.7, and
// returns its token Secret when it is signed.
func (c *Cluster) SharedCredential(t testing.TB, area string) *corev1.Secret {
	t.Helper()
	c.Put(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: SharedAccount, Namespace: area}})
	c.Put(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: SharedBinding, Namespace: area},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: v1alpha1.MemberClusterRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: area, Name: SharedAccount}},
	})
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: SharedSecret, Namespace: area, Annotations: map[string]string{corev1.ServiceAccountNameKey: SharedAccount}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	Eventually(t, "the shared token is signed", func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			secret.ResourceVersion = ""
			_ = c.Create(t.Context(), secret)
			return err
		}
		if len(secret.Data["token"]) == 0 || len(secret.Data["ca.crt"]) == 0 {
			return fmt.Errorf("no token in Secret %q", secret.Name)
		}
		return nil
	})
	return secret
}

// DeploySharing is DeployMember for one that uses a credential others use too.
func (f *Fleet) DeploySharing(t testing.TB, cluster string, token *corev1.Secret, tune func(config.Role, *config.Options)) *Controller {
	t.Helper()
	m := &Controller{Cluster: Open(t, f.Lab, cluster), Namespace: "kube-system", ID: cluster, fleet: f}
	m.deploy(t, config.Member, tune)
	m.Put(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "leader-token", Namespace: m.Namespace},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{"ca.crt": token.Data["ca.crt"], "token": token.Data["token"]},
	})
	m.Make(t, m.Set())
	m.AwaitReady(t)
	return m
}
