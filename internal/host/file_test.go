package host

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReplace checks that the old file is removed only after the new one is in place, and stays if
// the replacement fails.
func TestReplace(t *testing.T) {
	for name, replace := range map[string]func(fresh, to string) error{"at once": Replace, "in steps": replaceInSteps} {
		dir := t.TempDir()
		fresh, to := filepath.Join(dir, "fresh"), filepath.Join(dir, "to")
		put := func(at, text string) {
			t.Helper()
			if err := os.MkdirAll(at, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(at, "file"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want := func(text string) {
			t.Helper()
			if got, err := os.ReadFile(filepath.Join(to, "file")); err != nil || string(got) != text {
				t.Errorf("%s: there is %q, not %q: %v", name, got, text, err)
			}
			if all, _ := os.ReadDir(dir); len(all) != 1 {
				t.Errorf("%s: left are %v", name, all)
			}
		}
		put(to, "former")
		put(fresh, "new")
		if err := replace(fresh, to); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		want("new")
		if err := replace(fresh, to); err == nil {
			t.Errorf("%s: nothing took its place", name)
		}
		want("new")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "fresh"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Replace(filepath.Join(dir, "fresh"), filepath.Join(dir, "to")); err != nil {
		t.Errorf("where nothing was: %v", err)
	}
}

// TestWriteNamed checks that only regular files are replaced. Content for any other file, even for
// a link, is written into it.
func TestWriteNamed(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		t.Helper()
		if err := WriteNamed(at(name), []byte(text), 0o600); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	write("file", "former, and longer")
	former, err := os.Open(at("file"))
	if err != nil {
		t.Fatal(err)
	}
	defer former.Close()
	write("file", "new")
	if text, _ := io.ReadAll(former); string(text) != "former, and longer" {
		t.Errorf("who had the file open reads %q", text)
	}
	for link, to := range map[string]string{"link": "file", "to pipe": "pipe", "to nothing": "fresh"} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	write("link", "more")
	write("to nothing", "first")
	for name, want := range map[string]string{"file": "more", "fresh": "first"} {
		if text, err := os.ReadFile(at(name)); string(text) != want {
			t.Errorf("%s has %q, %v", name, text, err)
		}
	}
	if err := unix.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe", "to pipe"} {
		said := make(chan string)
		go func() {
			text, err := os.ReadFile(at("pipe"))
			said <- fmt.Sprint(string(text), err)
		}()
		write(name, "into it")
		if got := <-said; got != "into it<nil>" {
			t.Errorf("by %s came %q", name, got)
		}
	}
	for name, want := range map[string]os.FileMode{"pipe": os.ModeNamedPipe, "link": os.ModeSymlink,
		"to pipe": os.ModeSymlink} {
		if info, err := os.Lstat(at(name)); err != nil || info.Mode().Type() != want {
			t.Errorf("%s is another now: %v", name, err)
		}
	}
	if err := WriteNamed(dir, nil, 0o600); err == nil {
		t.Error("a directory was replaced")
	}
}
