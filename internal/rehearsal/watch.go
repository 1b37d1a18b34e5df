package rehearsal

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// A ProbeRequest is a request to probers.
type ProbeRequest struct {
	// the command that every host runs: it gets the targets as JSON on standard input, and
	// repeatedly prints what it has seen, as JSON
	Command []string
	Targets []Target
}

// HostView contains what the probers of a host have seen.
type HostView struct {
	Host  string
	Nodes []string // nodes of the site on this host
	Views []View
}

// watches are the running probers of all hosts.
type watches struct {
	mutex sync.Mutex
	all   []*watch
}

// A watch is the running prober command of one host.
type watch struct {
	cmd    *exec.Cmd
	orders io.Closer
	ended  chan struct{}
	mutex  sync.Mutex
	seen   HostView
}

// Watch starts probers on all running hosts. It ends earlier ones.
func (k *Supervisor) Watch(o ProbeRequest, _ *int) error {
	k.watches.mutex.Lock()
	defer k.watches.mutex.Unlock()
	k.watches.end()
	targets, err := json.Marshal(o.Targets)
	if err != nil {
		return err
	}
	for number := 1; number <= len(k.o.Places); number++ {
		m, err := k.running(number)
		if err != nil {
			continue
		}
		cmd := reexec(roleVisitor, append([]string{filepath.Join(groupOf(k.o.Name), portName(number)),
			strconv.Itoa(m.init.Process.Pid)}, o.Command...)...)
		cmd.Env = commandEnv
		w, err := startWatch(cmd, targets)
		if err != nil {
			k.watches.end()
			return err
		}
		k.watches.all = append(k.watches.all, w)
	}
	return nil
}

// startWatch starts the witness command of a host.
func startWatch(cmd *exec.Cmd, targets []byte) (*watch, error) {
	orders, err1 := cmd.StdinPipe()
	said, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &watch{cmd: cmd, orders: orders, ended: make(chan struct{})}
	go func() { _, _ = orders.Write(append(targets, '\n')) }()
	go func() {
		defer close(w.ended)
		for says := json.NewDecoder(said); ; {
			var seen HostView
			if says.Decode(&seen) != nil {
				break
			}
			w.mutex.Lock()
			w.seen = seen
			w.mutex.Unlock()
		}
		_ = cmd.Wait() // it ends with its host
	}()
	return w, nil
}

// endTimeout limits the wait for the end of a witness command. On a paused host, it does not end.
const endTimeout = 2 * time.Second

// end ends all witness commands and returns what they have seen.
func (w *watches) end() (all []HostView) {
	for _, one := range w.all {
		_ = one.orders.Close()
	}
	late, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	for _, one := range w.all {
		select {
		case <-one.ended:
		case <-late.Done():
			_ = one.cmd.Process.Kill()
		}
		one.mutex.Lock()
		all = append(all, one.seen)
		one.mutex.Unlock()
	}
	w.all = nil
	return all
}

// Watched ends the witnesses, and sets all to what they have seen.
func (k *Supervisor) Watched(_ int, all *[]HostView) error {
	k.watches.mutex.Lock()
	defer k.watches.mutex.Unlock()
	*all = k.watches.end()
	return nil
}

// Watch starts witnesses on all hosts. The function stop ends them and returns what they have seen.
func (h *Hosts) Watch(o ProbeRequest) (stop func() ([]HostView, error), err error) {
	if err := h.calls.call("Watch", o, nil); err != nil {
		return nil, err
	}
	return func() (all []HostView, err error) {
		err = h.calls.call("Watched", 0, &all)
		return all, err
	}, nil
}
