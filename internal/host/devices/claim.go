package devices

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/device"
)

// A Holder is a node that has a device.
type Holder struct {
	Node   string `json:"node"`             // SITE/ID
	Dir    string `json:"dir"`              // directory of the node; without it, the claim protects nothing
	Shared bool   `json:"shared,omitempty"` // the device may have other holders that say so
}

// A claim is the record of a device that nodes have. Its file is named by the number of the device.
type claim struct {
	Number
	Whole   Number   `json:"whole"` // disk that the device is a partition of, or Number
	Holders []Holder `json:"holders"`
}

// conflicts reports whether two claims are for the same data.
func (c claim) conflicts(with claim) bool {
	return c.Number == with.Number || c.Block && with.Block && (c.Whole == with.Number || with.Whole == c.Number)
}

func (h Host) path(n Number) string {
	return filepath.Join(h.Claims, fmt.Sprintf("%s-%d-%d", n.kind(), n.Major, n.Minor))
}

// claims returns all claims, without the holders whose directories no longer exist.
func (h Host) claims() (all []claim, err error) {
	entries, err := os.ReadDir(h.Claims)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue // the lock, or a file that is being written
		}
		c, err := host.ReadJSON[claim](filepath.Join(h.Claims, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // released at this moment
		}
		if err != nil {
			return nil, err
		}
		c.Holders = slices.DeleteFunc(c.Holders, func(of Holder) bool {
			_, err := os.Lstat(of.Dir)
			return errors.Is(err, fs.ErrNotExist)
		})
		all = append(all, c)
	}
	return all, err
}

// Claim records that a node has devices, all or none, and returns them with the files that it gets.
// It returns an error if the host uses one of them, or another node that does not share it.
func (h Host) Claim(ctx context.Context, node, dir string, wanted []device.Device) (all []Lent, err error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	unlock, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	claims, err := h.claims()
	if err != nil {
		return nil, err
	}
	for _, d := range wanted {
		files, err := h.available(node, d, claims)
		if err != nil {
			return nil, err
		}
		all = append(all, Lent{d, files})
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.release(node))
		}
	}()
	for _, l := range all {
		for _, f := range l.Files {
			if err := h.add(f.Number, Holder{node, dir, l.Shared}); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// available returns the files of a device, or an error if a node cannot have it.
func (h Host) available(node string, d device.Device, claims []claim) ([]File, error) {
	files, err := h.resolve(d)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		held := false
		for _, c := range claims {
			if !c.conflicts(claim{Number: f.Number, Whole: h.wholeDisk(f.Number)}) {
				continue
			}
			for _, by := range c.Holders {
				held = true
				if by.Node != node && (!by.Shared || !d.Shared) {
					return nil, unable("device %s is used by node %s", f.Path, by.Node).
						Try("stop that node first, or write shared = true for both")
				}
			}
		}
		if !f.Block || held {
			continue // a node that has it may have mounted it
		}
		err := h.busy(h.real(f), f.Number)
		if errors.Is(err, errBusy) {
			return nil, unable("device %s is in use by this host, or by a virtual machine", f.Path).
				Try("lsblk %s shows how; unmount it, or name another device", f.Path)
		}
		if err != nil {
			return nil, unable("device %s cannot be opened", f.Path).Because(err).
				Try("connect it, or remove it from devices")
		}
	}
	return files, nil
}

// real returns the path of the host's file for a device, without links.
func (h Host) real(f File) string {
	path := filepath.Join(h.Dev, strings.TrimPrefix(f.Path, "/dev/"))
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

func (h Host) add(n Number, by Holder) error {
	c, err := host.ReadJSON[claim](h.path(n))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	c.Number, c.Whole = n, h.wholeDisk(n)
	c.Holders = slices.DeleteFunc(c.Holders, func(of Holder) bool { return of.Node == by.Node })
	c.Holders = append(c.Holders, by)
	return host.WriteJSON(h.path(n), 0o600, c)
}

// Release removes the claims of a node.
func (h Host) Release(ctx context.Context, node string) error {
	if _, err := os.Lstat(h.Claims); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := h.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return h.release(node)
}

func (h Host) release(node string) error {
	claims, err := h.claims()
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range claims {
		rest := slices.DeleteFunc(slices.Clone(c.Holders), func(of Holder) bool { return of.Node == node })
		switch {
		case len(rest) == 0:
			errs = append(errs, os.Remove(h.path(c.Number)))
		case len(rest) < len(c.Holders):
			c.Holders = rest
			errs = append(errs, host.WriteJSON(h.path(c.Number), 0o600, c))
		}
	}
	return errors.Join(errs...)
}

// Lacks returns why a node cannot have a device, or the zero Missing.
func (h Host) Lacks(node string, d device.Device) observe.Missing {
	claims, err := h.claims()
	if err == nil {
		_, err = h.available(node, d, claims)
	}
	if err == nil {
		return observe.Missing{}
	}
	var p *problem.Problem
	if !errors.As(err, &p) {
		return observe.Missing{What: err.Error(), Cure: "run orrery as root"}
	}
	what := p.What
	if p.Err != nil {
		what += ": " + p.Err.Error()
	}
	return observe.Missing{What: what, Cure: p.Cure}
}

// User returns the node that has a device, as SITE/ID, or "".
func (h Host) User(n Number) (string, error) {
	claims, err := h.claims()
	for _, c := range claims {
		if len(c.Holders) > 0 && c.conflicts(claim{Number: n, Whole: h.wholeDisk(n)}) {
			return c.Holders[0].Node, nil
		}
	}
	return "", err
}

// Present returns those of the lent devices that the host still has under the same numbers.
func (h Host) Present(lent []Lent) (all []device.Device) {
	for _, l := range lent {
		same := func(a, b File) bool { return a.Number == b.Number && a.Path == b.Path }
		if now, err := h.resolve(l.Device); err == nil && slices.EqualFunc(now, l.Files, same) {
			all = append(all, l.Device)
		}
	}
	return all
}

// lock takes the lock of all claims.
func (h Host) lock(ctx context.Context) (unlock func(), err error) {
	l, err := host.WaitLock(ctx, filepath.Join(h.Claims, ".lock"), host.Exclusive, "the lock of lent devices")
	if err != nil {
		return nil, err
	}
	return l.Release, nil
}
