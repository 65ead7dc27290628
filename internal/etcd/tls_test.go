package etcd_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockstep-dev/lockstep/internal/etcd"
	"github.com/lockstep-dev/lockstep/internal/lab/pki"
)

func TestPEM(t *testing.T) {
	authority, err := pki.NewAuthority("test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair := authority.PEM()
	cases := map[string]struct {
		pem  etcd.PEM
		want string // part of the error; empty when it is fine
	}{
		"all three parts":                         {etcd.PEM{CA: pair.Cert, Cert: pair.Cert, Key: pair.Key}, ""},
		"a server that asks for no certificate":   {etcd.PEM{CA: pair.Cert}, ""},
		"the system's authorities":                {etcd.PEM{}, ""},
		"half a pair is a mistake":                {etcd.PEM{CA: pair.Cert, Cert: pair.Cert}, "give both or neither"},
		"an authority that is none":               {etcd.PEM{CA: []byte("x")}, "holds no certificate"},
		"a key that is none is not in the error":  {etcd.PEM{Cert: pair.Cert, Key: []byte("hush")}, "give certificate and key as PEM"},
		"a certificate in the place of a key":     {etcd.PEM{Cert: pair.Cert, Key: pair.Cert}, "give certificate and key as PEM"},
		"a certificate that is no certificate":    {etcd.PEM{Cert: pair.Key, Key: pair.Key}, "give certificate and key as PEM"},
		"an empty pair beside an authority is OK": {etcd.PEM{CA: pair.Cert, Cert: []byte{}, Key: []byte{}}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := c.pem.Config()
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q in it", err, c.want)
			case err != nil && strings.Contains(err.Error(), "hush"):
				t.Errorf("the key is in the error: %v", err)
			}
		})
	}
	if _, err := (etcd.Files{CA: "/nowhere/ca.crt"}).Config(); err == nil {
		t.Error("a file that is not there was read")
	}
}
