package remote_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"orrery/internal/apply"
	"orrery/internal/journal"
)

// A torn host has records that can be read only in part.
type torn struct{ apply.NodeHost }

func (torn) Log(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(io.MultiReader(strings.NewReader("the first line\n"),
		iotest.ErrReader(errors.New("the disk is broken")))), nil
}

type tornRuns struct{ apply.RunHost }

func (tornRuns) ReadJournal(context.Context, int) ([]journal.Entry, []int, error) {
	return []journal.Entry{{Kind: "begin"}}, nil, errors.New("the disk is broken")
}

type tornMachine struct{ machine }

func (m *tornMachine) Host(_, key string, _ apply.Secrets) apply.Host {
	h := m.of(key).Worker.Host
	h.Nodes, h.Runs = torn{h.Nodes}, tornRuns{h.Runs}
	return h
}

// TestTorn: a log or journal that a host cannot read to its end returns an error.
func TestTorn(t *testing.T) {
	p := newPair(t)
	far := p.to(&tornMachine{machine{dir: p.machine.dir, hosts: p.machine.hosts}}, "1").Host("s", p.keyring())
	log, err := far.Nodes.Log(t.Context(), "web1")
	must(t, err)
	text, err := io.ReadAll(log)
	if string(text) != "the first line\n" || err == nil || !strings.Contains(err.Error(), "the disk is broken") {
		t.Errorf("the log is %q, %v", text, err)
	}
	must(t, log.Close())
	if all, _, err := far.Runs.ReadJournal(t.Context(), 0); err == nil || !strings.Contains(err.Error(),
		"the disk is broken") {
		t.Errorf("the journal is %v, %v", all, err)
	}
}
