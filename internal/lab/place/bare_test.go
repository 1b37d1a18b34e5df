package place

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/host/cgroup"
	"orrery/test/need"
)

// layer creates a tree with a program of this host behind links that are relative to the tree's own
// root, like those of update-alternatives(1).
func layer(t *testing.T, program string) string {
	t.Helper()
	root := t.TempDir()
	content, err := os.ReadFile(program)
	if err != nil {
		t.Skipf("no %s here", program)
	}
	for _, dir := range []string{"usr/bin", "etc/alternatives", "etc/ld.so.conf.d"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("usr/bin/tool.real", string(content), 0o755)
	write("usr/bin/script", "#!/bin/sh\n", 0o755)
	write("etc/ld.so.conf.d/multiarch.conf", "# a comment\n/usr/local/lib/some-arch\n", 0o644)
	for link, to := range map[string]string{"usr/bin/tool": "/etc/alternatives/tool",
		"etc/alternatives/tool": "/usr/bin/tool.real"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestWords(t *testing.T) {
	root := layer(t, "/bin/true")
	b := &Bare{Root: root}
	words, err := b.resolveArgv("tool")
	if err != nil {
		t.Fatal(err)
	}
	if len(words) != 6 || words[5] != filepath.Join(root, "usr/bin/tool.real") ||
		!strings.HasPrefix(words[0], root+"/") || words[4] != "tool" {
		t.Errorf("%q", words)
	}
	if want := filepath.Join(root, "usr/local/lib/some-arch"); !slices.Contains(strings.Split(words[2], ":"), want) {
		t.Errorf("libraries %s, without %s", words[2], want)
	}
	for _, program := range []string{"missing", "script"} {
		if words, err := b.resolveArgv(program); err == nil {
			t.Errorf("%s: %q", program, words)
		}
	}
}

// TestBare: a program of the layer runs on the host, sees the host and the layer, and leaves no
// mount behind.
func TestBare(t *testing.T) {
	need.Integration(t)
	dir := t.TempDir()
	root := layer(t, "/bin/cat")
	b := &Bare{Root: filepath.Join(dir, "root"), Layers: []string{root, "/usr"}, Scratch: filepath.Join(dir, "scratch")}
	p := &Place{Runner: b, Name: "bare", Programs: func(string) []string {
		// The program's libraries are those of this host, because the tree has none.
		return []string{filepath.Join(b.Root, "usr/bin/tool.real")}
	}}
	out, err := p.Output(context.Background(), "tool", filepath.Join(b.Root, "usr/bin/script"), "/etc/hostname")
	name, _ := os.ReadFile("/etc/hostname")
	if err != nil || string(out) != "#!/bin/sh\n"+string(name) {
		t.Errorf("%q, %v", out, err)
	}
	if left, err := os.ReadDir(b.Root); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
	if _, err := Output(context.Background(), b, "no-such-program"); err == nil {
		t.Error("a program that is not there ran")
	}
}

// TestBeside: commands run in their control group in every hierarchy, and this process does not.
func TestBeside(t *testing.T) {
	need.Integration(t)
	dir := t.TempDir()
	b := &Bare{Root: filepath.Join(dir, "root"), Layers: []string{layer(t, "/bin/cat"), "/usr"},
		Scratch: filepath.Join(dir, "scratch")}
	group := cgroup.InSite("it-bare", "s-bare-0")
	t.Cleanup(func() { cgroup.Remove(group); cgroup.RemoveEmpty("it-bare") })
	out, err := Output(t.Context(), GroupedBare{Bare: b, Group: group}, "/bin/cat", "/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	inside := 0
	for line := range strings.Lines(string(out)) {
		if strings.HasSuffix(strings.TrimSpace(line), ":/"+group.Inner().Name()) {
			inside++
		}
	}
	if all := strings.Count(string(out), "\n"); inside == 0 || inside < all {
		t.Errorf("in %d of %d hierarchies: %s", inside, all, out)
	}
	ours := "/proc/thread-self/ns/net"
	for _, alone := range []bool{false, true} {
		out, err := Output(t.Context(), GroupedBare{b, group, alone}, "/bin/sh", "-c",
			"readlink /proc/self/ns/net; cat /proc/net/dev")
		own, _ := os.Readlink(ours)
		if err != nil || strings.Contains(string(out), own) == alone || alone && len(ParseLinks(string(out))) != 1 {
			t.Errorf("alone %v: %s, and ours is %s (%v)", alone, out, own, err)
		}
	}
	if left := group.Processes(); len(left) > 0 {
		t.Errorf("left in it: %v", left)
	}
	if _, err := Output(t.Context(), GroupedBare{Bare: b, Group: group}, "no-such-program"); err == nil {
		t.Error("a program that is not there ran")
	}
}
