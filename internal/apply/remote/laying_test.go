package remote_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/treesync"
)

// A laying host works on for a while after its caller has given up.
type laying struct {
	begun chan bool
	over  atomic.Bool
}

func (l *laying) lay(way io.Reader) error {
	l.begun <- true
	_, err := io.Copy(io.Discard, way)
	time.Sleep(50 * time.Millisecond)
	l.over.Store(true)
	return err
}

// The subjects that it implements.
type (
	layingBackups struct {
		apply.BackupHost
		*laying
	}
	layingVolumes struct {
		apply.VolumeHost
		*laying
	}
)

func (l layingBackups) Receive(_ context.Context, way io.ReadWriter) error { return l.lay(way) }

func (l layingVolumes) Receive(_ context.Context, _ apply.Directory, way io.ReadWriter) error {
	return l.lay(way)
}

type layingMachine struct {
	*machine
	of laying
}

func (m *layingMachine) Host(_, key string, secrets apply.Secrets) apply.Host {
	h := m.machine.Host("", key, secrets)
	h.Backups, h.Volumes = layingBackups{h.Backups, &m.of}, layingVolumes{h.Volumes, &m.of}
	return h
}

// TestLayingEnds: when a call that stores data on a host returns, the host has stopped writing.
// This holds even if the caller has interrupted it, or has nothing more to send because the backup
// is damaged. Otherwise data that the caller then removes could reappear.
func TestLayingEnds(t *testing.T) {
	calls := map[string]func(ctx context.Context, h apply.Host, way io.ReadWriter) error{
		"backup": func(ctx context.Context, h apply.Host, way io.ReadWriter) error { return h.Backups.Receive(ctx, way) },
		"volume": func(ctx context.Context, h apply.Host, way io.ReadWriter) error {
			return h.Volumes.Receive(ctx, apply.Directory{}, way)
		},
	}
	for name, call := range calls {
		for _, damaged := range []bool{false, true} {
			p := newPair(t)
			m := &layingMachine{machine: p.machine, of: laying{begun: make(chan bool, 1)}}
			h := p.to(m, "1").Host("toykat", p.keyring())
			ctx, cancel := context.WithCancel(t.Context())
			err := treesync.Pipe(ctx, func(io.ReadWriter) error {
				<-m.of.begun
				if damaged {
					return io.ErrNoProgress
				}
				cancel()
				return ctx.Err()
			}, func(way io.ReadWriter) error { return call(ctx, h, way) })
			cancel()
			if wants := map[bool]error{false: context.Canceled, true: io.ErrNoProgress}[damaged]; !errors.Is(err, wants) {
				t.Errorf("%s, damaged %v: %v", name, damaged, err)
			}
			if !m.of.over.Load() {
				t.Errorf("%s, damaged %v: the host is still at it", name, damaged)
			}
		}
	}
}
