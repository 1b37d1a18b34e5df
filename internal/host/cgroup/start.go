package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"orrery/internal/tree/rawfile"
)

// Start starts a command in the group. It is to be called by work that has a thread of its own
// (host.Apart), see Join.
func (g Group) Start(cmd *exec.Cmd) error {
	joined, err := g.Join(cmd)
	if err != nil {
		return err
	}
	defer joined()
	return cmd.Start()
}

// Join makes the group, unless it is there, and lets a command be in it that the calling thread
// starts; then joined is to be called. In version 1, the thread goes there itself, as who starts
// something gives it its own groups. So nothing that the command does is ever outside.
func (g Group) Join(cmd *exec.Cmd) (joined func(), err error) {
	if err := g.Make(); err != nil {
		return nil, err
	}
	v1, v2 := g.at.versions()
	for _, root := range v1 {
		if err := os.WriteFile(filepath.Join(root, g.name, "tasks"), []byte("0"), 0); err != nil { // whoever writes it
			return nil, err
		}
	}
	if v2 == "" {
		return func() {}, nil
	}
	group, err := os.Open(filepath.Join(v2, g.name))
	if err != nil {
		return nil, err
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(group.Fd())
	return func() { group.Close() }, nil //nolint:errcheck // nothing was written to it
}

// Make makes the group in every hierarchy, unless it is there.
func (g Group) Make() error {
	v1, v2 := g.at.versions()
	if v2 != "" {
		v1 = append(v1, v2)
	}
	for _, root := range v1 {
		in := branch{root, g.name}
		err := in.make()
		for try := 0; errors.Is(err, fs.ErrNotExist) && try < 10; try++ {
			err = in.make() // it was the last of its site for a moment, and another took away what was above it
		}
		if err != nil {
			return fmt.Errorf("control group %s: %w", g.name, err)
		}
	}
	g.weighed()
	return nil
}

// make makes the group, from the top down.
func (b branch) make() error {
	above := b.root
	for name := range strings.SplitSeq(b.name, "/") {
		if err := delegate(b.root, above); err != nil {
			return err
		}
		at := filepath.Join(above, name)
		if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := settle(above, at); err != nil {
			return err
		}
		above = at
	}
	return nil
}

// delegate lets the groups in one of version 2 have the controllers of limits, as LXC does. It asks
// for all at once, then, if the kernel refuses one, for each: whoever sets a limit is told that
// there is no file for it.
func delegate(root, group string) error {
	offered, err := rawfile.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var want []string
	for _, c := range []string{"cpuset", "cpu", "io", "memory", "pids"} {
		if strings.Contains(" "+strings.TrimSpace(string(offered))+" ", " "+c+" ") {
			want = append(want, "+"+c)
		}
	}
	control := filepath.Join(group, "cgroup.subtree_control")
	if len(want) == 0 || os.WriteFile(control, []byte(strings.Join(want, " ")), 0) == nil {
		return nil
	}
	for _, c := range want {
		_ = os.WriteFile(control, []byte(c), 0)
	}
	return nil
}

// settle sets the processors and memory nodes of a group of version 1 to those of the one above it: without
// them, no process may enter. Groups that others make in it have them, too.
func settle(above, group string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		text, err := rawfile.ReadFile(filepath.Join(group, file))
		if errors.Is(err, fs.ErrNotExist) || isV2(above) {
			return nil // of another controller
		}
		if err == nil && strings.TrimSpace(string(text)) == "" {
			text, err = rawfile.ReadFile(filepath.Join(above, file))
			if err == nil {
				err = os.WriteFile(filepath.Join(group, file), text, 0)
			}
		}
		if err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(group, "cgroup.clone_children"), []byte("1"), 0)
}

// versions returns the hierarchies of version 1, each once, and that of version 2, which may be beside them.
func (p place) versions() (v1 []string, v2 string) {
	if isV2(string(p)) {
		return nil, string(p)
	}
	entries, err := os.ReadDir(string(p))
	if err != nil {
		return nil, ""
	}
	for _, e := range entries {
		root := filepath.Join(string(p), e.Name())
		if !e.IsDir() || !p.isV1(e.Name()) { // a link is another name of one
			continue
		}
		if isV2(root) {
			v2 = root
		} else {
			v1 = append(v1, root)
		}
	}
	return v1, v2
}

// isV2 reports whether a group is one of version 2.
func isV2(group string) bool {
	_, err := os.Stat(filepath.Join(group, "cgroup.controllers"))
	return err == nil
}
