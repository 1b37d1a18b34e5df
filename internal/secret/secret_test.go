package secret

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/site"
)

// keyring returns a keyring whose secrets come from files and have been fetched.
func keyring(t *testing.T, values map[string]string) *Keyring {
	t.Helper()
	s := &site.Site{Name: "s"}
	dir := t.TempDir()
	for name, value := range values {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
		s.Secrets = append(s.Secrets, site.Secret{Name: name, File: path})
	}
	k := NewKeyring(s, host.Dirs{State: dir})
	for name, value := range values {
		got, err := k.Value(t.Context(), name)
		if err != nil || got != strings.TrimSuffix(value, "\n") {
			t.Fatalf("%s: %q, %v", name, got, err)
		}
	}
	return k
}

func TestRedact(t *testing.T) {
	k := keyring(t, map[string]string{
		"password": "hunter22\n", "longer": "hunter22-and-more", "pin": "123",
		"key": "-----BEGIN-----\nAAAABBBB\nCCCC\n-----END-----\n",
	})
	for text, want := range map[string]string{
		"it is hunter22!":   "it is <secret password>!",
		"hunter22-and-more": "<secret longer>",
		"hunter22hunter22":  "<secret password><secret password>",
		"pin 123":           "pin 123",
		"x-----BEGIN-----\nAAAABBBB\nCCCC\n-----END-----y": "x<secret key>y",
		"AAAABBBB\nCCCC\n": "<secret key>\n<secret key>\n",
		"nothing to hide":  "nothing to hide",
	} {
		if got := k.Redact(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestWriter(t *testing.T) {
	k := keyring(t, map[string]string{"password": "hunter22", "key": "-----BEGIN-----\nAAAABBBB\nCCCC\n"})
	text := "a hunter22 b\n-----BEGIN-----\nAAAABBBB\nCCCC\nthe end hunter22"
	for size := 1; size < len(text); size++ {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			var out bytes.Buffer
			w := k.NewWriter(&out)
			for i := 0; i < len(text); i += size {
				part := text[i:min(i+size, len(text))]
				if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatal(n, err)
				}
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			for _, hidden := range []string{"hunter22", "BEGIN", "AAAA", "CCCC"} {
				if strings.Contains(out.String(), hidden) {
					t.Errorf("%q is in %q", hidden, out.String())
				}
			}
			if !strings.Contains(out.String(), "the end") {
				t.Errorf("of the text only %q came through", out.String())
			}
		})
	}
}

func TestGenerated(t *testing.T) {
	s := &site.Site{Name: "s", Secrets: []site.Secret{{Name: "a", Generate: 40}, {Name: "b", Generate: 40}}}
	dirs := host.Dirs{State: t.TempDir()}
	value := func(name string) string {
		t.Helper()
		v, err := NewKeyring(s, dirs).Value(t.Context(), name)
		if err != nil || len(v) != 40 {
			t.Fatal(v, err)
		}
		return v
	}
	if a := value("a"); a != value("a") || a == value("b") {
		t.Error("a generated secret is not made once, or not at random")
	}
	info, err := os.Stat(filepath.Join(dirs.Secrets("s"), "a"))
	if err != nil || info.Mode() != 0o600 {
		t.Error(info.Mode(), err)
	}
}

func TestCommand(t *testing.T) {
	s := &site.Site{Name: "s", Secrets: []site.Secret{
		{Name: "good", Command: []string{"/bin/echo", "from a command"}},
		{Name: "bad", Command: []string{"/bin/sh", "-c", "echo hunter$((20+2)); echo no key >&2; exit 1"}},
	}}
	k := NewKeyring(s, host.Dirs{State: t.TempDir()})
	if v, err := k.Value(t.Context(), "good"); v != "from a command" || err != nil {
		t.Error(v, err)
	}
	_, err := k.Value(t.Context(), "bad")
	if err == nil || !strings.Contains(err.Error(), "no key") || strings.Contains(err.Error(), "hunter22") {
		t.Errorf("the error is %v", err)
	}
	if _, err := k.Value(t.Context(), "none"); err == nil {
		t.Error("a secret that is not declared has a value")
	}
}
