package image

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// testState keeps a base image between runs, so that only the first run of these tests builds one.
func testState(t *testing.T) *Store {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: builds with LXC")
	}
	for _, program := range []string{"lxc-start", "mmdebstrap"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s", program)
		}
	}
	state := os.Getenv("ORRERY_TEST_STATE")
	if state == "" {
		state = "/var/cache/orrery-test"
	}
	return Open(state)
}

func sayTo(t *testing.T) func(string) {
	begun := time.Now()
	return func(text string) { t.Logf("%5.1fs %s", time.Since(begun).Seconds(), text) }
}

func testBase(t *testing.T, s *Store) *spec.Layer {
	t.Helper()
	l := spec.Base(site.Mirror{}, site.Image{Name: "debian", Suite: "bookworm"})
	if err := s.BuildBase(context.Background(), l, site.Mirror{}, sayTo(t)); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestBuildLayer(t *testing.T) {
	s := testState(t)
	base := testBase(t, s)
	l := &spec.Layer{Digest: spec.DigestBytes([]byte(t.Name())), Title: "debian + test", Base: base.Digest, Parts: spec.Parts{"test": "1"}}
	t.Cleanup(func() { removeTree(s.Dir + "/" + l.Digest) })
	var log bytes.Buffer
	say := sayTo(t)
	err := s.BuildLayer(context.Background(), l, site.Mirror{}, func(ctx context.Context, in host.Runner) error {
		if err := in.Put(ctx, host.File{Path: "/opt/hello/world", Content: []byte("hello\n"), Mode: 0o640, Owner: "root:adm"}); err != nil {
			return err
		}
		say("apt")
		if err := s.InstallApt(ctx, in, []string{"tree", "python3-venv", "iputils-ping"}, &log); err != nil {
			return err
		}
		for _, args := range [][]string{
			{"sh", "-ec", "env; id; mount; ls -la /run /run/orrery-build /; cat /etc/hosts"},
			{"python3", "-m", "venv", "/opt/orrery/venv"},
			{"/opt/orrery/venv/bin/pip", "install", "six"},
			{"sh", "-ec", "useradd -m olga; touch /home/olga/x; chown olga:olga /home/olga/x; rm /etc/motd; rm -rf /usr/share/base-files; mkdir /usr/share/base-files"},
		} {
			say(args[0])
			if err := in.Run(ctx, host.Command{Args: args, Stdout: &log, Stderr: &log}); err != nil {
				return err
			}
		}
		return nil
	}, &log, say)
	t.Log(log.String())
	if err != nil {
		t.Fatal(err)
	}
	say("done")
	r, err := s.Record(l.Digest)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %s %d files %v", r.Content, size(uint64(r.Size)), r.Files, r.Python)
}
