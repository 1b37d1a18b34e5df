package pkgmirror

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// A keyring is the home directory of GnuPG, with the key that signs the archive.
type keyring string

func (k keyring) gpg(ctx context.Context, args ...string) error { return k.gpgTo(ctx, nil, args...) }

// An agent that is ending because gpg was run just before may still accept a connection and then
// drop it.
const (
	agentTries = 10
	agentPause = 100 * time.Millisecond
)

// agentEndedMessages are words in gpg's errors by which it reports that the agent has ended (gpg-error(1)).
var agentEndedMessages = []string{"agent", "Broken pipe", "End of file", "Connection reset", "Connection refused"}

// lock lets one process at a time use the keys, because each process ends the agent when it is
// done.
func (k keyring) lock(ctx context.Context) (*host.Lock, error) {
	return host.TakeLockWithin(ctx, keyLockTimeout, string(k)+".lock", host.NewHolder("root", "orrery mirror pull"))
}

// keyLockTimeout is the time limit for waiting for the keys.
const keyLockTimeout = 5 * time.Minute

// gpgTo runs gpg with the mirror's own keys, not the user's. The agent ends with gpg, so that no
// process is left.
func (k keyring) gpgTo(ctx context.Context, out io.Writer, args ...string) error {
	all := append([]string{"gpg", "--homedir", string(k), "--batch", "--quiet", "--yes", "--no-tty", "--pinentry-mode",
		"loopback"}, args...)
	var err error
	for range agentTries {
		err = host.Exec(ctx, "this host", all, host.Command{Args: append([]string{"gpg"}, args...),
			Env: []string{"LC_ALL=C"}, Stdout: out}, nil)
		_ = host.Program(context.WithoutCancel(ctx), "gpgconf", "--homedir", string(k), "--kill", "all").Run()
		if err == nil || !containsAny(err.Error(), agentEndedMessages) || host.Sleep(ctx, agentPause) != nil {
			break
		}
	}
	if err != nil {
		return problem.New(problem.Failed, "the mirror's index could not be signed").At(string(k)).Because(err)
	}
	return nil
}

func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// sign signs a Release file with the mirror's own key, in both forms that apt reads.
func (k keyring) sign(ctx context.Context, dir string) error {
	lock, err := k.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := k.gpg(ctx, "--output", filepath.Join(dir, "InRelease"), "--clear-sign",
		filepath.Join(dir, "Release")); err != nil {
		return err
	}
	return k.gpg(ctx, "--output", filepath.Join(dir, "Release.gpg"), "--armor", "--detach-sign",
		filepath.Join(dir, "Release"))
}

// writeKey creates the key, unless it exists, and writes the public key to a file.
func (k keyring) writeKey(ctx context.Context, public string) error {
	if _, err := exec.LookPath("gpg"); err != nil {
		return problem.New(problem.Unable, "gpg is not installed on this host").Try("apt-get install gpg")
	}
	lock, err := k.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Release()
	made := filepath.Join(string(k), "made")
	if _, err := os.Stat(made); err != nil {
		// A half-created key is useless.
		if err := os.RemoveAll(string(k)); err != nil {
			return err
		}
		if err := os.MkdirAll(string(k), 0o700); err != nil {
			return err
		}
		name, err := os.Hostname()
		if err != nil {
			return err
		}
		err = k.gpg(ctx, "--passphrase", "", "--quick-generate-key", "Orrery's mirror on "+name, "rsa3072", "sign", "never")
		if err == nil {
			err = os.WriteFile(made, nil, 0o600)
		}
		if err != nil {
			return err
		}
	}
	var out bytes.Buffer
	if err := k.gpgTo(ctx, &out, "--armor", "--export"); err != nil {
		return err
	}
	return host.WriteFile(host.File{Path: public, Content: out.Bytes(), Mode: 0o644})
}
