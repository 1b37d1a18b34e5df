package lxc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/problem"
)

// frost is how long all processes of a node may take to stand still. One that waits for a disk does so when it has what it waits for.
const frost = 10 * time.Second

// Freeze lets all processes of a node stand still. A file tells that it was us, so that Sweep lets go on what a run that
// was killed has frozen, and leaves alone what others have.
func (e *Engine) Freeze(ctx context.Context, ref engine.Ref) error {
	c := e.container(ref)
	if !c.running() {
		return notRunning(ref)
	}
	if c.frozen() {
		return c.awaitFrost(ctx, true)
	}
	if err := os.WriteFile(c.freezing(), nil, 0o600); err != nil {
		return err
	}
	err := c.setFrozen(true)
	if err == nil {
		err = c.awaitFrost(ctx, true)
	}
	if err != nil {
		return errors.Join(problem.New(problem.Failed, "node %s does not stand still", ref.Name).At(c.Path()).Because(err), c.thaw())
	}
	return nil
}

// Thaw lets the processes of a node go on.
func (e *Engine) Thaw(ctx context.Context, ref engine.Ref) error {
	c := e.container(ref)
	if err := c.thaw(); err != nil {
		return problem.New(problem.Failed, "node %s stays frozen", ref.Name).At(c.Path()).Because(err)
	}
	return c.awaitFrost(ctx, false)
}

// freezing is a file that is there from before the node is frozen by us until after it goes on.
func (c container) freezing() string { return c.File("freezing") }

// thaw lets a frozen node go on, whoever froze it.
func (c container) thaw() error {
	if c.frozen() {
		if err := c.setFrozen(false); err != nil {
			return err
		}
	}
	if err := os.Remove(c.freezing()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (c container) setFrozen(frozen bool) error {
	file, value := c.freezer("freezer.state"), map[bool]string{true: "FROZEN", false: "THAWED"}[frozen]
	if !isV1("freezer") {
		file, value = c.freezer("cgroup.freeze"), map[bool]string{true: "1", false: "0"}[frozen]
	}
	return os.WriteFile(file, []byte(value), 0)
}

// freezer is a file of the node's control group in the hierarchy that has the freezer.
func (c container) freezer(file string) string {
	return filepath.Join(hierarchy("freezer"), c.cgroup(), file)
}

// awaitFrost waits until the node as a whole has been frozen, or goes on. One that does not run goes on.
func (c container) awaitFrost(ctx context.Context, frozen bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, frost, fmt.Errorf("some of its processes go on after %v", frost))
	defer cancel()
	for {
		file, want := c.freezer("freezer.state"), "FROZEN"
		if !isV1("freezer") {
			file, want = c.freezer("cgroup.events"), "frozen 1"
		}
		text, err := os.ReadFile(file)
		if err != nil && frozen {
			return err
		}
		if strings.Contains(string(text), want) == frozen {
			return nil
		}
		if err := host.Pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}
