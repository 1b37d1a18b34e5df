package login

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"

	"orrery/internal/problem"
)

// TestKnock checks that ConnectWhenReady retries while there is no answer, but not if the host key is wrong.
func TestKnock(t *testing.T) {
	d := server(t)
	dial, tried := d.Dial, 0
	d.Dial = func(ctx context.Context) (net.Conn, error) {
		if tried++; tried == 1 {
			return nil, errors.New("nobody listens")
		}
		return dial(ctx)
	}
	c, err := d.ConnectWhenReady(t.Context())
	must(t, err)
	must(t, c.Close())
	d.Host = key(t, filepath.Join(t.TempDir(), "another")).PublicKey()
	before := tried
	var p *problem.Problem
	if _, err := d.ConnectWhenReady(t.Context()); !errors.As(err, &p) || tried != before+1 {
		t.Errorf("after %d attempts: %v", tried-before, err)
	}
}

// TestKeyAt checks that a key is created once.
func TestKeyAt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys/key")
	one, text, err := LoadOrCreateKey(path, "test")
	must(t, err)
	other, again, err := LoadOrCreateKey(path, "test")
	must(t, err)
	if string(text) != string(again) || string(one.PublicKey().Marshal()) != string(other.PublicKey().Marshal()) {
		t.Error("it was made anew")
	}
}
