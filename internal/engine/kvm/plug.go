package kvm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/nodedir"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// lettingGo is how long a guest may take to let go of a disk.
const lettingGo = 30 * time.Second

// replug changes the disks of a running machine: none, if something goes wrong, but those that came before it.
func (e *Engine) replug(ctx context.Context, was *nodedir.Record, is site.VM) error {
	change, live := was.VM.Replug(is)
	if !live {
		return problem.New(problem.Surprise, "node %s runs: its disks cannot be changed so", was.Name).At(was.Site).Try("plan again")
	}
	if change.String() == "" {
		return nil
	}
	m := e.machine(engine.RefOf(&was.Node))
	q, err := m.monitor(ctx)
	if err != nil {
		return err
	}
	defer q.Close() //nolint:errcheck // all was answered
	for _, d := range change.Out {
		if err := m.unplug(ctx, q, d); err != nil {
			return err
		}
	}
	for _, d := range change.In {
		if err := e.plug(ctx, q, was, d); err != nil {
			return err
		}
	}
	for _, d := range change.Larger {
		if err := resize(ctx, q, d); err != nil {
			return m.diskProblem(d, "does not get larger", err)
		}
	}
	for _, d := range change.Bound {
		if err := q.Do(ctx, "qom-set", map[string]any{"path": "/objects/" + argv.GroupID(d), "property": "limits", "value": argv.LimitsOf(d)}, nil); err != nil {
			return m.diskProblem(d, "does not get other bounds", err)
		}
	}
	return nil
}

// plug gives a disk to a running machine. One that is plugged already stays: a run that was killed has not come to write it down.
func (e *Engine) plug(ctx context.Context, q *qmp.Client, r *nodedir.Record, drive site.Drive) error {
	m := e.machine(engine.RefOf(&r.Node))
	slot, there, err := slotFor(ctx, q, argv.DriveID(drive))
	if err != nil || there {
		return err
	}
	if slot == "" {
		return m.diskProblem(drive, "finds no free slot", errors.New("all are taken")).Try("orrery restart %s: the machine then has as many as it needs", r.Name)
	}
	d := e.disk(m.ref, drive)
	if err := e.provide(ctx, d, r); err != nil {
		return err
	}
	f, err := d.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	if err := m.attach(ctx, q, drive, f, slot); err != nil {
		err = m.diskProblem(drive, "cannot be plugged", err)
		return errors.Join(err, m.detach(context.WithoutCancel(ctx), q, drive))
	}
	return nil
}

func (m machine) attach(ctx context.Context, q *qmp.Client, drive site.Drive, f *os.File, slot string) error {
	path, err := q.Add(ctx, f)
	if err != nil {
		return err
	}
	is := argv.DriveOf(drive, path, slot)
	for _, step := range []struct {
		command string
		of      map[string]any
	}{{"object-add", is.Group}, {"blockdev-add", is.Block}, {"device_add", is.Device}} {
		if err := q.Do(ctx, step.command, step.of, nil); err != nil {
			return err
		}
	}
	return nil
}

// unplug takes a disk from a running machine, whose guest is asked to let go of it.
func (m machine) unplug(ctx context.Context, q *qmp.Client, drive site.Drive) error {
	err := q.Do(ctx, "device_del", map[string]string{"id": argv.DriveID(drive)}, nil)
	var refused *qmp.Refusal
	switch {
	case errors.As(err, &refused) && refused.Class == "DeviceNotFound": // it went before, in a run that was killed
	case err != nil && !strings.Contains(err.Error(), "already in the process of unplug"):
		return m.diskProblem(drive, "cannot be unplugged", err)
	default:
		waiting, cancel := context.WithTimeoutCause(ctx, lettingGo, fmt.Errorf("its guest has not let go of it within %s", lettingGo))
		defer cancel()
		if err := awaitGone(waiting, q, argv.DriveID(drive)); err != nil {
			return m.diskProblem(drive, "cannot be unplugged", err).Try("let the guest unmount it and run the same command again, or orrery restart %s", m.ref.Name)
		}
	}
	if err := m.detach(ctx, q, drive); err != nil {
		return m.diskProblem(drive, "stays with the machine", err)
	}
	return nil
}

// awaitGone waits until a device is gone.
func awaitGone(ctx context.Context, q *qmp.Client, id string) error {
	for {
		event, err := q.Await(ctx, "DEVICE_DELETED", "DEVICE_UNPLUG_GUEST_ERROR")
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		}
		var of struct {
			Device string `json:"device"`
		}
		if err := json.Unmarshal(event.Data, &of); err != nil || of.Device != id {
			continue
		}
		if event.Name != "DEVICE_DELETED" {
			return errors.New("its guest refuses to let go of it")
		}
		return nil
	}
}

// detach takes away what is behind a disk that the guest has no more, as far as it is there. With it goes the file that QEMU was handed.
func (m machine) detach(ctx context.Context, q *qmp.Client, drive site.Drive) error {
	for _, step := range []struct {
		command string
		of      map[string]string
	}{{"blockdev-del", map[string]string{"node-name": argv.BlockID(drive)}}, {"object-del", map[string]string{"id": argv.GroupID(drive)}}} {
		var refused *qmp.Refusal
		if err := q.Do(ctx, step.command, step.of, nil); err != nil && (!errors.As(err, &refused) || !absent(refused)) {
			return err
		}
	}
	return nil
}

// absent reports whether QEMU does not know what is to go.
func absent(r *qmp.Refusal) bool {
	return strings.Contains(r.What, "Failed to find node") || strings.Contains(r.What, "not found") || strings.Contains(r.What, "Cannot find")
}

// slotFor finds a free slot, and whether a device is there already.
func slotFor(ctx context.Context, q *qmp.Client, device string) (free string, there bool, err error) {
	var buses []argv.Bus
	if err := q.Do(ctx, "query-pci", nil, &buses); err != nil {
		return "", false, err
	}
	slots := argv.SlotsOf(buses)
	_, there = slots.Taken[device]
	used := map[int]bool{}
	for _, slot := range slots.Taken {
		used[slot] = true
	}
	for i := range slots.Number {
		if !used[i] {
			return argv.Slot(i), there, nil
		}
	}
	return "", there, nil
}
