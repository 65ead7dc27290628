package probe

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Target is a place to look at.
type Target struct {
	// URL is set for httpGet; Address (host:port) for tcpSocket.
	URL     string
	Header  http.Header
	Address string
}

// TargetOf finds out where a probe looks. The default host is where the Pod's
// processes listen. Kinds that need a look from inside a container are refused.
func TargetOf(p *corev1.Probe, container *corev1.Container, host netip.Addr) (Target, error) {
	switch {
	case p.HTTPGet != nil:
		return httpTarget(p.HTTPGet, container, host)
	case p.TCPSocket != nil:
		address, err := join(p.TCPSocket.Host, p.TCPSocket.Port, container, host)
		return Target{Address: address}, err
	}
	return Target{}, fmt.Errorf("a probe of this kind is not supported for local processes; use httpGet or tcpSocket")
}

func httpTarget(get *corev1.HTTPGetAction, container *corev1.Container, host netip.Addr) (Target, error) {
	address, err := join(get.Host, get.Port, container, host)
	if err != nil {
		return Target{}, err
	}
	where, err := url.Parse(get.Path)
	if err != nil {
		return Target{}, fmt.Errorf("probe path %q: %w", get.Path, err)
	}
	where.Scheme, where.Host = strings.ToLower(string(get.Scheme)), address
	if where.Scheme == "" {
		where.Scheme = "http"
	}
	header := http.Header{"User-Agent": {"lockstep-lab-probe"}}
	for _, h := range get.HTTPHeaders {
		header.Set(h.Name, h.Value)
	}
	return Target{URL: where.String(), Header: header}, nil
}

func join(host string, port intstr.IntOrString, container *corev1.Container, otherwise netip.Addr) (string, error) {
	if host == "" {
		host = otherwise.String()
	}
	if port.Type == intstr.Int {
		return net.JoinHostPort(host, strconv.Itoa(port.IntValue())), nil
	}
	for _, p := range container.Ports {
		if p.Name == port.StrVal {
			return net.JoinHostPort(host, strconv.Itoa(int(p.ContainerPort))), nil
		}
	}
	return "", fmt.Errorf("probe port %q: container %q has no port of that name", port.StrVal, container.Name)
}

// Check looks once; nil means all is well.
func (t Target) Check(ctx context.Context) error {
	if t.Address != "" {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.Address)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.URL, nil)
	if err != nil {
		return err
	}
	request.Header = t.Header.Clone()
	if host := request.Header.Get("Host"); host != "" {
		request.Host = host
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode >= 400 {
		return fmt.Errorf("%s answered %s", t.URL, answer.Status)
	}
	return nil
}

// client follows no redirect (a redirect is an answer, and a good one), keeps
// no connection (the next look shall see what a new caller sees), uses no
// proxy, and takes any certificate, as a kubelet does.
var client = &http.Client{
	Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // a probe asks "are you there", not "who are you"
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}
