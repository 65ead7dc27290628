package mc

import (
	"context"
	"errors"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lockstep-dev/lockstep/api/multicluster/v1alpha2"
	"github.com/lockstep-dev/lockstep/internal/cli/exit"
)

// writeTime bounds one write. It is longer than an admission webhook may take.
const writeTime = 35 * time.Second

// careful is the client of all commands. An interrupt never cuts a write in
// two: what has begun is finished and its outcome known, and nothing else is
// begun. And where the API server forbids something, the error tells which
// right is missing.
func careful(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return lacking(ctx, c, "get", key.Namespace, c.Get(ctx, key, obj, opts...))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return lacking(ctx, c, "list", listedIn(opts), c.List(ctx, list, opts...))
		},
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (apiwatch.Interface, error) {
			changes, err := c.Watch(ctx, list, opts...)
			return changes, lacking(ctx, c, "watch", listedIn(opts), err)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return uncut(ctx, c, "create", obj, func(ctx context.Context) error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return uncut(ctx, c, "update", obj, func(ctx context.Context) error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return uncut(ctx, c, "patch", obj, func(ctx context.Context) error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return uncut(ctx, c, "delete", obj, func(ctx context.Context) error { return c.Delete(ctx, obj, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return whole(ctx, func(ctx context.Context) error { return c.Apply(ctx, obj, opts...) })
		},
	})
}

func uncut(ctx context.Context, c client.Client, verb string, obj client.Object, write func(context.Context) error) error {
	namespace := obj.GetNamespace() // a failed write may leave anything in obj
	return lacking(ctx, c, verb, namespace, whole(ctx, write))
}

// whole begins a write only if the command has not been interrupted, and then
// sees it through.
func whole(ctx context.Context, write func(context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
	defer cancel()
	return write(ctx)
}

func listedIn(opts []client.ListOption) string {
	all := client.ListOptions{}
	all.ApplyOptions(opts)
	return all.Namespace
}

// missingRight is an answer "forbidden", with what would have to be granted.
type missingRight struct {
	right exit.Right
	cause error
}

func (e *missingRight) Error() string     { return e.cause.Error() }
func (e *missingRight) Unwrap() error     { return e.cause }
func (e *missingRight) Right() exit.Right { return e.right }

// mayLook tells which right is missing to see anything of a ClusterSet; nil when
// none is, or when that is not known. Who could read nothing asks.
func mayLook(ctx context.Context, c client.Reader) error {
	var lacking *missingRight
	if err := c.List(ctx, &v1alpha2.ClusterSetList{}, client.Limit(1)); errors.As(err, &lacking) {
		return err
	}
	return nil
}

// lacking finds out whether it was the authorizer that forbade something.
// Admission answers with the same code, so the API server is asked; when it
// does not say, the more likely of the two is assumed.
func lacking(ctx context.Context, c client.Client, verb, namespace string, err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) {
		return err
	}
	details := status.Status().Details
	if details == nil || details.Kind == "" {
		return err
	}
	resource := schema.GroupResource{Group: details.Group, Resource: details.Kind}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: resource.Group, Resource: resource.Resource, Namespace: namespace, Name: details.Name,
		},
	}}
	if unasked := c.Create(ctx, review); unasked == nil && review.Status.Allowed {
		return err
	}
	return &missingRight{exit.Right{Verb: verb, Resource: resource.String(), Namespace: namespace}, err}
}
