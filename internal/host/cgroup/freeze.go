package cgroup

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/tree/rawfile"
)

// frost is how long all processes of a group may take to stand still. One that waits for a disk
// does so when it has what it waits for.
const frost = 10 * time.Second

// nudge is after how long processes are told again to stand still. With cgroup v1, those that were
// forked just as the others were told may go on.
const nudge = 10 * time.Millisecond

// SetFrozen lets all processes of the group stand still, or go on. It does not wait until they do.
func (g Group) SetFrozen(frozen bool) error {
	file, value := "freezer.state", map[bool]string{true: "FROZEN", false: "THAWED"}[frozen]
	if !g.at.isV1("freezer") {
		file, value = "cgroup.freeze", map[bool]string{true: "1", false: "0"}[frozen]
	}
	return os.WriteFile(g.file("freezer", file), []byte(value), 0)
}

// ThawAll thaws the group and every group below it, in every hierarchy that can freeze. A node's
// root freezes groups of its own, and what is frozen neither ends in order nor, with version 1,
// dies of SIGKILL.
func (g Group) ThawAll(ctx context.Context) error {
	for _, root := range g.at.freezing() {
		if err := (branch{root, g.name}).walk(ctx, thawIn); err != nil {
			return err
		}
	}
	return nil
}

// freezing returns the hierarchies whose groups can be frozen.
func (p place) freezing() (all []string) {
	if p.isV1("freezer") {
		all = append(all, p.hierarchy("freezer"))
	}
	if _, v2 := p.versions(); v2 != "" {
		all = append(all, v2)
	}
	return all
}

// thawIn thaws one group if it was frozen itself: one that is frozen with a group above it has
// nothing to be written.
func thawIn(above int, name string) error {
	if own, err := readIn(above, name, "freezer.self_freezing"); err == nil && bytes.HasPrefix(own, []byte("1")) {
		return writeIn(above, name, "freezer.state", "THAWED")
	}
	if own, err := readIn(above, name, "cgroup.freeze"); err == nil && bytes.HasPrefix(own, []byte("1")) {
		return writeIn(above, name, "cgroup.freeze", "0")
	}
	return nil
}

// Frozen reports whether the group's processes stand still, or are about to.
func (g Group) Frozen() bool {
	if g.at.isV1("freezer") {
		text, _ := rawfile.ReadFile(g.file("freezer", "freezer.state"))
		return strings.HasPrefix(string(text), "FROZEN") || strings.HasPrefix(string(text), "FREEZING")
	}
	text, _ := rawfile.ReadFile(g.file("freezer", "cgroup.freeze"))
	return strings.HasPrefix(string(text), "1")
}

// AwaitFrost waits until the group as a whole has been frozen, or goes on. One that is not there goes on.
func (g Group) AwaitFrost(ctx context.Context, frozen bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, frost, fmt.Errorf("some of its processes go on after %v", frost))
	defer cancel()
	for told := time.Now(); ; {
		file, want := "freezer.state", "FROZEN"
		if !g.at.isV1("freezer") {
			file, want = "cgroup.events", "frozen 1"
		}
		text, err := rawfile.ReadFile(g.file("freezer", file))
		if err != nil && frozen {
			return err
		}
		if strings.Contains(string(text), want) == frozen {
			return nil
		}
		if frozen && strings.HasPrefix(string(text), "FREEZING") && time.Since(told) > nudge {
			if err := g.SetFrozen(true); err != nil {
				return err
			}
			told = time.Now()
		}
		if err := host.Pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}
