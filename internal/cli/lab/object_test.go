package lab_test

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-dev/lockstep/internal/lab"
)

// object is what a script does to the first cluster of its lab as its administrator:
//
//	object create NAME           makes a ConfigMap
//	object has NAME              demands that it is there
//	object deploy NAME           makes a Deployment
//	object clock NAME [OFFSET]   demands that the Pods of a Deployment have that clock
//
// With "!" it must fail, and the last argument is a pattern that the error matches.
func object(ts *testscript.TestScript, neg bool, args []string) {
	pattern := ""
	if neg {
		pattern, args = args[len(args)-1], args[:len(args)-1]
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := asAdministrator(ctx, labOf(ts.Getenv("WORK")), args[0], args[1], append(args, "")[2])
	switch {
	case !neg:
		ts.Check(err)
	case err == nil:
		ts.Fatalf("object %q was done", args)
	case !regexp.MustCompile(pattern).MatchString(err.Error()):
		ts.Fatalf("object %q failed with %v, not with %q", args, err, pattern)
	}
}

// soon PATTERN PROGRAM ARGUMENTS… runs a program until a line of what it says matches.
func soon(ts *testscript.TestScript, _ bool, args []string) {
	pattern := regexp.MustCompile("(?m)" + args[0])
	tick, late := time.NewTicker(100*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			ts.Fatalf("%s does not say %q", args[1], args[0])
		}
	}
}

func asAdministrator(ctx context.Context, dir, do, name, value string) error {
	l, err := lab.Open(dir)
	if err != nil {
		return err
	}
	cluster, err := l.Cluster(l.ClusterNames()[0])
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cluster.RESTConfig())
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: name}
	objects, deployments := client.CoreV1().ConfigMaps("default"), client.AppsV1().Deployments("default")
	switch do {
	case "create":
		_, err = objects.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{})
	case "has":
		_, err = objects.Get(ctx, name, metav1.GetOptions{})
	case "deploy":
		labels := map[string]string{"app": name}
		_, err = deployments.Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "other"}}}},
		}}, metav1.CreateOptions{})
	case "clock":
		var deployment *appsv1.Deployment
		if deployment, err = deployments.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		got := ""
		for _, variable := range deployment.Spec.Template.Spec.Containers[0].Env {
			if variable.Name == "LOCKSTEP_CLOCK_OFFSET" {
				got = variable.Value
			}
		}
		if got != value || deployment.Status.UpdatedReplicas != 1 || deployment.Status.Replicas != 1 {
			return fmt.Errorf("the clock of Deployment %q is shifted by %q, of %d Pods %d have it; want %q", name, got, deployment.Status.Replicas, deployment.Status.UpdatedReplicas, value)
		}
	default:
		err = fmt.Errorf("object %s is unknown", do)
	}
	return err
}
