package mirror

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
)

func (m *Mirror) gpg(ctx context.Context, args ...string) error { return m.gpgTo(ctx, nil, args...) }

// An agent that ends, because gpg was run just before, may still take a connection and then drop it.
const (
	agentTries = 10
	agentPause = 100 * time.Millisecond
)

// agentGone are words of gpg by which an agent has ended (gpg-error(1)).
var agentGone = []string{"agent", "Broken pipe", "End of file", "Connection reset", "Connection refused"}

// lockKeys lets one process use the keys at a time: each ends the agent when it has.
func (m *Mirror) lockKeys(ctx context.Context) (*host.Lock, error) {
	return host.TakeLockWithin(ctx, keysTimeout, m.Keys+".lock", host.NewHolder("root", "orrery mirror pull"))
}

// keysTimeout is how long the keys are waited for.
const keysTimeout = 5 * time.Minute

// gpgTo runs gpg with the mirror's own keys, not the user's. Its agent ends with it: nothing is left running.
func (m *Mirror) gpgTo(ctx context.Context, out io.Writer, args ...string) error {
	all := append([]string{"gpg", "--homedir", m.Keys, "--batch", "--quiet", "--yes", "--no-tty", "--pinentry-mode", "loopback"}, args...)
	var err error
	for range agentTries {
		err = host.Exec(ctx, "this host", all, host.Command{Args: append([]string{"gpg"}, args...), Env: []string{"LC_ALL=C"}, Stdout: out}, nil)
		_ = host.Program(context.WithoutCancel(ctx), "gpgconf", "--homedir", m.Keys, "--kill", "all").Run()
		if err == nil || !saysAny(err.Error(), agentGone) || host.Pause(ctx, agentPause) != nil {
			break
		}
	}
	if err != nil {
		return problem.New(problem.Failed, "the mirror's index could not be signed").At(m.Keys).Because(err)
	}
	return nil
}

func saysAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}
