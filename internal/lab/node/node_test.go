package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lockstep-dev/lockstep/internal/lab"
	"github.com/lockstep-dev/lockstep/internal/lab/labtest"
	"github.com/lockstep-dev/lockstep/internal/lab/node"
	"github.com/lockstep-dev/lockstep/internal/lab/node/podaddr"
)

var cluster = labtest.Shared(labtest.Options{Clusters: []string{"east"}})

func TestMain(m *testing.M) {
	if os.Getenv(playEnv) != "" {
		os.Exit(play(os.Args[1:]))
	}
	log.SetLogger(logr.Discard()) // of the client that creates objects
	os.Exit(cluster.Main(m))
}

// image is played by the test binary; any other image is foreign.
const image = "registry.example/lockstep-dev/player:v1"

// bench is an agent on the shared cluster, and a namespace of the test. The lab
// runs an agent of its own, so Pods of these tests choose their node by name.
type bench struct {
	*testing.T
	east      *lab.Cluster
	config    *rest.Config
	cidr      netip.Prefix
	client    kubernetes.Interface
	generic   client.Client
	namespace string
	dir       string
	agent     *node.Agent
	stop      func()
}

func newBench(t *testing.T) *bench {
	t.Helper()
	east := labtest.Cluster(t, cluster.Lab(t), "east")
	b := &bench{T: t, east: east, config: east.RESTConfig(), cidr: spareRange(east.PodCIDR()), dir: t.TempDir()}
	b.config.QPS = -1
	var err, errGeneric error
	b.client, err = kubernetes.NewForConfig(b.config)
	b.generic, errGeneric = client.New(b.config, client.Options{})
	if err := errors.Join(err, errGeneric); err != nil {
		t.Fatal(err)
	}
	b.startAgent()
	t.Cleanup(func() { b.stop() })
	b.makeNamespace()
	return b
}

// nodeName is the node of the tests' agent.
const nodeName = "node-0"

// onNode chooses that node.
func onNode() map[string]string { return map[string]string{corev1.LabelHostname: nodeName} }

// spareRange is in the upper half of the lab's addresses, which the one cluster
// of this lab does not use.
func spareRange(cluster netip.Prefix) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, cluster.Addr().As4()[1], 128, 0}), 17)
}

func (b *bench) startAgent() {
	b.Helper()
	level := slog.LevelInfo
	if testing.Verbose() {
		level = slog.LevelDebug
	}
	agent, err := node.New(node.Options{
		RESTConfig: b.config, Dir: b.dir, Name: nodeName, PodCIDR: b.cidr,
		Images: map[string][]string{"player": {os.Args[0]}},
		Env:    []string{playEnv + "=1"},
		Log:    slog.New(slog.NewTextHandler(b.Output(), &slog.HandlerOptions{Level: level})),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- agent.Run(ctx) }()
	b.agent = agent
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
		if left := agent.Pods(); len(left) > 0 {
			b.Errorf("the agent has ended and left processes: %v", left)
		}
	})
}

func (b *bench) makeNamespace() {
	b.Helper()
	ns, err := b.client.CoreV1().Namespaces().Create(b.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-test-"}}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.namespace = ns.Name
	b.Cleanup(func() {
		if err := b.client.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			b.Error(err)
		}
	})
	b.eventually("the namespace has its default ServiceAccount", func(ctx context.Context) error {
		_, err := b.client.CoreV1().ServiceAccounts(b.namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// eventually repeats a check until it succeeds or 30 s have passed.
func (b *bench) eventually(what string, check func(context.Context) error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil { // that it was interrupted says nothing
			last = err
		}
		select {
		case <-ctx.Done():
			b.Fatalf("not in time: %s: %v", what, last)
		case <-tick.C:
		}
	}
}

// pods lists the Pods of the test that carry a label app.
func (b *bench) pods(ctx context.Context, app string) ([]corev1.Pod, error) {
	list, err := b.client.CoreV1().Pods(b.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// readyPod waits for exactly one Pod of an app that is ready, and not one of
// those given.
func (b *bench) readyPod(app string, not ...*corev1.Pod) *corev1.Pod {
	b.Helper()
	var found *corev1.Pod
	b.eventually("app "+app+" has one Pod, and it is ready", func(ctx context.Context) error {
		pods, err := b.pods(ctx, app)
		if err != nil {
			return err
		}
		if len(pods) != 1 || !isReady(&pods[0]) {
			return fmt.Errorf("have %s", describe(pods))
		}
		for _, other := range not {
			if pods[0].UID == other.UID {
				return fmt.Errorf("still %s", describe(pods))
			}
		}
		found = &pods[0]
		return nil
	})
	return found
}

// ask sends a request to the process of a Pod.
func (b *bench) ask(pod *corev1.Pod, path string) (string, error) {
	host := podaddr.Twin(netip.MustParseAddr(pod.Status.PodIP))
	answer, err := http.Get(fmt.Sprintf("http://%s:8080%s", host, path))
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", answer.Status, body)
	}
	return string(body), nil
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

func describe(pods []corev1.Pod) string {
	var parts []string
	for _, p := range pods {
		text := fmt.Sprintf("%s %s ready=%v deleted=%v", p.Name, p.Status.Phase, isReady(&p), p.DeletionTimestamp != nil)
		for _, c := range p.Status.ContainerStatuses {
			text += fmt.Sprintf(" %s=%v", c.Name, c.State)
		}
		parts = append(parts, text)
	}
	return "[" + strings.Join(parts, "; ") + "]"
}
