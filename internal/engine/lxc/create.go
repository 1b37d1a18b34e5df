package lxc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/image"
	"orrery/internal/network"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// Create makes a node's directory under another name and renames it, so that there is no half-made node.
func (e *Engine) Create(_ context.Context, n *spec.Node) error {
	c := e.container(engine.RefOf(n))
	if _, err := os.Stat(c.Path()); err == nil {
		return problem.New(problem.Surprise, "node %s (id %d) is there already", n.Name, n.ID).At(c.Path()).Try("plan again")
	}
	slot, err := e.takeSlot(n.Site, n.ID)
	if err != nil {
		return err
	}
	fresh, err := e.prepare(c, &nodedir.Record{Node: *n, Slot: slot})
	if err != nil {
		return err
	}
	return os.Rename(fresh, c.Path())
}

// prepare makes the directory of a node beside the place where it will be.
func (e *Engine) prepare(c container, r *nodedir.Record) (string, error) {
	r.Config = spec.Config{} // nothing of it has been applied
	fresh := filepath.Join(filepath.Dir(c.Path()), "."+filepath.Base(c.Path())+"-new")
	if err := tree.RemoveAll(fresh); err != nil {
		return "", err
	}
	for _, dir := range []string{"rootfs", "binds", "private/upper", "private/work"} {
		if err := os.MkdirAll(filepath.Join(fresh, dir), 0o755); err != nil {
			return "", err
		}
	}
	// What is set-user-ID root in the node is so here: no user of the host may get at it.
	if err := os.Chmod(filepath.Join(fresh, "private"), 0o700); err != nil {
		return "", err
	}
	upper, err := tree.Open(filepath.Join(fresh, "private/upper"))
	if err != nil {
		return "", err
	}
	defer upper.Close()
	if err := e.personalise(stopped{upper, 0}, &r.Node); err != nil { // on disk, the node's root is 0
		return "", fmt.Errorf("private layer of node %s: %w", r.Name, err)
	}
	if err := nodedir.At(fresh).Write(r); err != nil {
		return "", err
	}
	return fresh, enclose(fresh, ids(r))
}

// enclose closes the directory of a node to all users of the host but root and, if it is another, the root of the node, from whose
// namespace LXC mounts what is in there: that one may go through it.
func enclose(dir string, to image.IDs) error {
	mode, group := os.FileMode(0o700), 0
	if to.Size > 0 {
		mode, group = 0o710, to.First
	}
	if err := os.Chown(dir, 0, group); err != nil {
		return err
	}
	return os.Chmod(dir, mode)
}

// takeSlot chooses a range of ids that no node on this host has. A file that only one can make takes it, so that
// two sites being brought up at once do not choose the same.
func (e *Engine) takeSlot(site string, id int) (int, error) {
	e.slots.Lock()
	defer e.slots.Unlock()
	dir := slots
	if err := os.MkdirAll(filepath.Dir(dir), 0o711); err != nil { // nodes' trees are below it, if this is the usual state directory
		return 0, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	owner := e.slotsOf(site) + strconv.Itoa(id)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	taken := map[int]bool{}
	for _, entry := range entries {
		slot, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		who, _ := os.Readlink(filepath.Join(dir, entry.Name()))
		if who == owner {
			return slot, nil // taken by a run that was killed before it made the node
		}
		taken[slot] = true
	}
	for slot := 1; ; slot++ { // 0 is where layers are built
		if taken[slot] {
			continue
		}
		err := os.Symlink(owner, filepath.Join(dir, strconv.Itoa(slot)))
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		return slot, err
	}
}

func (e *Engine) freeSlot(r *nodedir.Record) error {
	path := filepath.Join(slots, strconv.Itoa(r.Slot))
	if who, _ := os.Readlink(path); who != e.slotsOf(r.Site)+strconv.Itoa(r.ID) {
		return nil
	}
	return os.Remove(path)
}

// slots says whose each range of user ids is. It is one for the machine, whatever state directories there are: user ids are the kernel's.
var slots = "/var/lib/orrery/slots"

// slotsOf gives what the owners of the slots of a site's nodes begin with: SITE/, and before that the state directory if it is not the usual one.
func (e *Engine) slotsOf(site string) string {
	if e.dirs.State == filepath.Dir(slots) {
		return site + "/"
	}
	return e.dirs.State + ":" + site + "/"
}

// Change records what the node shall be and, if it runs, moves its links and applies its limits.
func (e *Engine) Change(ctx context.Context, n *spec.Node) error {
	c := e.container(engine.RefOf(n))
	r, err := c.Read()
	if err != nil {
		return missing(c, err)
	}
	was := r.Node
	r.Node = *n
	r.Base, r.Layer, r.Below, r.Parts, r.Config = was.Base, was.Layer, was.Below, was.Parts, was.Config
	running := c.running()
	switch {
	case running && reshaped(&was, n):
		return problem.New(problem.Surprise, "node %s runs: its interfaces, mounts and privileges cannot be changed", n.Name).At(c.Path()).Try("plan again")
	case running:
		err = c.changeRunning(ctx, n)
	case reshaped(&was, n):
		err = e.personaliseAgain(c, r)
	}
	if err != nil {
		return err
	}
	if err := c.Write(r); err != nil || was.Privileged == n.Privileged {
		return err
	}
	return enclose(c.Path(), ids(r))
}

// personaliseAgain makes the root of a node that does not run this node's once more, as the node sees it: it has written there itself.
func (e *Engine) personaliseAgain(c container, r *nodedir.Record) error {
	err := e.within(c, r, func(root stopped) error { return e.personalise(root, &r.Node) })
	if err != nil {
		return problem.New(problem.Failed, "node %s: its host name, machine-id and keys cannot be written", r.Name).At(c.Path()).Because(err).
			Try("put that right in the node; or remove the node with orrery down and make it anew with orrery up")
	}
	return nil
}

// reshaped reports whether two specifications differ in what only a stopped node can change.
func reshaped(was, is *spec.Node) bool {
	return was.Privileged != is.Privileged || was.MachineID != is.MachineID || !slices.Equal(spec.Linked(was), spec.Linked(is)) ||
		!slices.Equal(was.Mounts, is.Mounts)
}

// changeRunning moves the links that are not where they shall be, all or none, and applies limits.
func (c container) changeRunning(ctx context.Context, is *spec.Node) error {
	var moves []network.Move
	for _, nic := range is.NICs {
		if is.KindOf(nic) == site.Bridge && bridgeOf(nic.HostEnd) != nic.Bridge {
			moves = append(moves, network.Move{Link: nic.HostEnd, Bridge: nic.Bridge})
		}
	}
	if len(moves) > 0 {
		if err := network.MoveLinks(ctx, moves); err != nil {
			return err
		}
	}
	if at := c.space(); at != "" && !is.Staged { // its links may have been moved out of quarantine, in one batch with others
		if err := network.ForgetNeighbours(at); err != nil {
			return err
		}
	}
	return c.applyLimits(is.Limits)
}

// Space gives the file of a node's network namespace.
func (e *Engine) Space(ref engine.Ref) string { return e.container(ref).space() }

func (c container) space() string {
	pid := c.init()
	if pid == 0 {
		return ""
	}
	return "/proc/" + strconv.Itoa(pid) + "/ns/net"
}

// Mark records how far a node has come.
func (e *Engine) Mark(_ context.Context, ref engine.Ref, m engine.Mark) error {
	c := e.container(ref)
	r, err := c.Read()
	if err != nil {
		return missing(c, err)
	}
	r.Configured, r.Config, r.Proven, r.ProvenAt, r.Active = m.Configured, m.Config, m.Proven, m.ProvenAt, m.Active
	return c.Write(r)
}

func missing(c container, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return problem.New(problem.Surprise, "node %s (id %d) is not there", c.ref.Name, c.ref.ID).At(c.Path()).Try("plan again")
	}
	return problem.New(problem.Failed, "node %s: its record cannot be read", c.ref.Name).At(c.Path()).Because(err).
		Try("orrery up makes the node anew")
}
