package tree

import (
	"context"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// TestProgramBesideForks: a program that was just written can be executed although other threads
// start programs. Between fork and exec, their processes have copies of this process's open files.
// A file that is open for writing cannot be executed (ETXTBSY of execve(2)).
func TestProgramBesideForks(t *testing.T) {
	dir := t.TempDir()
	root, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ctx, stop := context.WithCancel(context.Background())
	var others sync.WaitGroup
	defer func() { stop(); others.Wait() }()
	for range 8 {
		others.Go(func() {
			for ctx.Err() == nil {
				_ = exec.Command("/bin/true").Run()
			}
		})
	}
	for i := range 300 {
		if err := root.Put(File{Path: "program", Content: []byte("#!/bin/sh\nexit 0\n"), Mode: 0o755, Uid: -1, Gid: -1}, -1,
			-1); err != nil {
			t.Fatal(err)
		}
		if err := exec.Command(filepath.Join(dir, "program")).Run(); err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
	}
}
