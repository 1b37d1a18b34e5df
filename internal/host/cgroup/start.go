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

// Start starts a command in the group. The caller must be on a thread of its own (host.OnLockedThread), see
// Join.
func (g Group) Start(cmd *exec.Cmd) error {
	joined, err := g.Join(cmd)
	if err != nil {
		return err
	}
	defer joined()
	return cmd.Start()
}

// Join creates the group if it does not exist, and prepares a command that the calling thread will
// start in it. The caller calls joined after the start. With version 1, the thread itself enters
// the group, because a child starts in the groups of the thread that started it. So the command is
// never outside the group.
func (g Group) Join(cmd *exec.Cmd) (joined func(), err error) {
	if err := g.Create(); err != nil {
		return nil, err
	}
	v1, v2 := g.at.hierarchiesByVersion()
	for _, root := range v1 {
		if err := os.WriteFile(filepath.Join(root, g.name, "tasks"), []byte("0"), 0); err != nil { // 0: this thread
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

// Create creates the group in every hierarchy where it does not exist.
func (g Group) Create() error {
	v1, v2 := g.at.hierarchiesByVersion()
	if v2 != "" {
		v1 = append(v1, v2)
	}
	for _, root := range v1 {
		in := groupDir{root, g.name}
		err := in.create()
		for try := 0; errors.Is(err, fs.ErrNotExist) && try < 10; try++ {
			err = in.create() // another process removed a parent, because the site had no group for a moment
		}
		if err != nil {
			return fmt.Errorf("control group %s: %w", g.name, err)
		}
	}
	g.updateWeights()
	return nil
}

// create creates the group and its parents, from the top down.
func (b groupDir) create() error {
	above := b.root
	for name := range strings.SplitSeq(b.name, "/") {
		if err := delegate(b.root, above); err != nil {
			return err
		}
		at := filepath.Join(above, name)
		if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := inheritCpuset(above, at); err != nil {
			return err
		}
		above = at
	}
	return nil
}

// delegate turns on the controllers of limits for the groups in a group of version 2, as LXC does.
// It first asks for all at once and, if the kernel refuses, for each of them. It ignores errors:
// a later attempt to set a limit fails, because the file of the limit is missing.
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

// inheritCpuset sets the processors and memory nodes of a group of version 1 to those of its parent.
// Without them, no process may enter the group. Groups that other programs create in it inherit
// them.
func inheritCpuset(above, group string) error {
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

// hierarchiesByVersion returns the hierarchies of version 1, each once, and the hierarchy of version 2, which
// may be mounted beside them.
func (p mountPoint) hierarchiesByVersion() (v1 []string, v2 string) {
	if isV2(string(p)) {
		return nil, string(p)
	}
	entries, err := os.ReadDir(string(p))
	if err != nil {
		return nil, ""
	}
	for _, e := range entries {
		root := filepath.Join(string(p), e.Name())
		if !e.IsDir() || !p.isV1(e.Name()) { // a symbolic link is another name of a hierarchy
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

// isV2 reports whether a group is in a hierarchy of version 2.
func isV2(group string) bool {
	_, err := os.Stat(filepath.Join(group, "cgroup.controllers"))
	return err == nil
}
