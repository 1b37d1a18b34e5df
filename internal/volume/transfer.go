package volume

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// all is what tar(1) keeps of a file besides what it keeps by itself.
var all = []string{"--numeric-owner", "--acls", "--xattrs", "--xattrs-include=*"}

// transfer copies files from one tree to another, over those that are there. In a live tree, files may vanish or change meanwhile.
func transfer(ctx context.Context, from, to string, paths []string, live bool) error {
	if len(paths) == 0 {
		return nil
	}
	for _, path := range paths {
		bare(filepath.Join(to, path))
	}
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	read := append([]string{"tar", "-C", from, "--format=posix", "--sparse", "--no-recursion", "--null", "--verbatim-files-from", "-T", "-", "-cf", "-"}, all...)
	if live {
		read = append(read, "--ignore-failed-read", "--warning=none")
	}
	write := append([]string{"tar", "-C", to, "--delay-directory-restore", "--same-owner", "-xpf", "-"}, all...)
	done := make(chan error, 1)
	go func() {
		defer in.Close()
		list := host.Command{Args: read, Stdin: strings.NewReader("./" + strings.Join(paths, "\x00./") + "\x00"), Env: []string{"LC_ALL=C"}}
		done <- host.Exec(ctx, "host", read, list, func(cmd *exec.Cmd) { cmd.Stdout = in })
	}()
	err = host.Exec(ctx, "host", write, host.Command{Args: write, Stdin: out, Env: []string{"LC_ALL=C"}}, nil)
	out.Close() // so that the other ends, should this one have failed
	return errors.Join(err, readProblem(<-done, live))
}

// readProblem judges how reading ended. Status 1 says that a file changed while it was read.
func readProblem(err error, live bool) error {
	var ran *host.RunError
	if errors.As(err, &ran) && ran.Status == 1 {
		if live {
			return nil
		}
		return problem.New(problem.Failed, "somebody wrote into it who was to stand still").Because(err)
	}
	return err
}

// bare takes the extended attributes off a directory of the copy, to which tar would only add. Files are made anew anyway.
func bare(path string) {
	var s unix.Stat_t
	if unix.Lstat(path, &s) != nil || s.Mode&unix.S_IFMT != unix.S_IFDIR {
		return
	}
	names := make([]byte, 64<<10) // XATTR_LIST_MAX
	n, err := unix.Llistxattr(path, names)
	if err != nil || n == 0 {
		return
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names[:n]), "\x00"), "\x00") {
		_ = unix.Lremovexattr(path, name)
	}
}
