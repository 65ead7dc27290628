package node_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// playEnv makes the test binary play the program of a container instead of
// running tests.
const playEnv = "LOCKSTEP_NODE_TEST_PROGRAM"

// play is the program: "serve" answers questions about itself over HTTP,
// "write FILE TEXT" writes a file, "exit N" ends at once.
func play(args []string) int {
	fmt.Println("program started with", args)
	switch {
	case len(args) == 2 && args[0] == "exit":
		code, err := strconv.Atoi(args[1])
		if err != nil {
			return 99
		}
		return code
	case len(args) == 3 && args[0] == "write":
		if err := os.WriteFile(args[1], []byte(args[2]), 0o600); err != nil {
			fmt.Println(err)
			return 1
		}
		return 0
	case len(args) > 0 && args[0] == "serve":
		if err := serve(args[1:]); err != nil {
			fmt.Println(err)
			return 1
		}
		return 0
	}
	return 98
}

func serve(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if os.Getenv("STUBBORN") != "" {
		ctx = context.Background()
	}
	var sick atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if sick.Load() {
			http.Error(w, "sick", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/sick", func(http.ResponseWriter, *http.Request) { sick.Store(true) })
	mux.HandleFunc("/env", func(w http.ResponseWriter, _ *http.Request) {
		for _, variable := range os.Environ() {
			fmt.Fprintln(w, variable)
		}
	})
	mux.HandleFunc("/arg", func(w http.ResponseWriter, r *http.Request) {
		i, err := strconv.Atoi(r.URL.Query().Get("n"))
		if err != nil || i >= len(args) {
			http.Error(w, "no such argument", http.StatusNotFound)
			return
		}
		data, err := os.ReadFile(args[i])
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = w.Write(data)
	})
	mux.HandleFunc("/whoami", func(w http.ResponseWriter, r *http.Request) {
		name, err := whoAmI(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, name)
	})
	server := &http.Server{Addr: os.Getenv("POD_IP") + ":8080", Handler: mux}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// whoAmI asks the API server, with nothing but what the process was given.
func whoAmI(ctx context.Context) (string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return "", err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}
