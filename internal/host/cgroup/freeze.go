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

// freezeTimeout limits how long all processes of a group may take to freeze. A process that waits for a
// disk freezes only after the disk has answered.
const freezeTimeout = 10 * time.Second

// refreezeInterval is the interval at which processes are frozen again. With cgroup v1, processes that were
// forked just when the others were frozen may keep running.
const refreezeInterval = 10 * time.Millisecond

// SetFrozen freezes or thaws all processes of the group. It does not wait until they have done so.
func (g Group) SetFrozen(frozen bool) error {
	file, value := "freezer.state", map[bool]string{true: "FROZEN", false: "THAWED"}[frozen]
	if !g.at.isV1("freezer") {
		file, value = "cgroup.freeze", map[bool]string{true: "1", false: "0"}[frozen]
	}
	return os.WriteFile(g.file("freezer", file), []byte(value), 0)
}

// ThawAll thaws the group and every group below it, in every hierarchy that can freeze. The root
// user of a node may freeze groups of its own. A frozen process cannot shut down and, with version
// 1, is not killed by SIGKILL.
func (g Group) ThawAll(ctx context.Context) error {
	for _, root := range g.at.freezerHierarchies() {
		if err := (groupDir{root, g.name}).walk(ctx, thawIn); err != nil {
			return err
		}
	}
	return nil
}

// freezerHierarchies returns the hierarchies whose groups can be frozen.
func (p mountPoint) freezerHierarchies() (all []string) {
	if p.isV1("freezer") {
		all = append(all, p.hierarchy("freezer"))
	}
	if _, v2 := p.hierarchiesByVersion(); v2 != "" {
		all = append(all, v2)
	}
	return all
}

// thawIn thaws one group if it was frozen itself. A group that is only frozen with a parent has no
// state of its own to change.
func thawIn(above int, name string) error {
	if own, err := readIn(above, name, "freezer.self_freezing"); err == nil && bytes.HasPrefix(own, []byte("1")) {
		return writeIn(above, name, "freezer.state", "THAWED")
	}
	if own, err := readIn(above, name, "cgroup.freeze"); err == nil && bytes.HasPrefix(own, []byte("1")) {
		return writeIn(above, name, "cgroup.freeze", "0")
	}
	return nil
}

// Frozen reports whether the group's processes are frozen or freezing.
func (g Group) Frozen() bool {
	if g.at.isV1("freezer") {
		text, _ := rawfile.ReadFile(g.file("freezer", "freezer.state"))
		return strings.HasPrefix(string(text), "FROZEN") || strings.HasPrefix(string(text), "FREEZING")
	}
	text, _ := rawfile.ReadFile(g.file("freezer", "cgroup.freeze"))
	return strings.HasPrefix(string(text), "1")
}

// WaitFrozen waits until the whole group is frozen or thawed. A group that does not exist is
// thawed.
func (g Group) WaitFrozen(ctx context.Context, frozen bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, freezeTimeout,
		fmt.Errorf("the processes did not all change state within %v", freezeTimeout))
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
		if frozen && strings.HasPrefix(string(text), "FREEZING") && time.Since(told) > refreezeInterval {
			if err := g.SetFrozen(true); err != nil {
				return err
			}
			told = time.Now()
		}
		if err := host.Sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}
