package kvm

import (
	"context"
	"encoding/json"
	"strings"

	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/kvm/qmp"
)

// machineTraits are what a machine must have in common with its successor. QEMU refuses the state of a
// machine of another type, with other device slots, or with other features. The QEMU of the running
// machine reports them. It is not trusted, because its guest may have taken it over. As JSON, they are
// the first line of a file with a state.
type machineTraits struct {
	Type  string     `json:"type"`
	Slots argv.Slots `json:"slots"`
	Empty bool       `json:"empty,omitempty"` // the seed drive is empty
	Kicks bool       `json:"kicks,omitempty"` // the guest notifies virtiofsd of each request
}

// traitsOf returns the traits of a running machine.
func traitsOf(ctx context.Context, q *qmp.Client) (l machineTraits, err error) {
	if err := q.Do(ctx, "qom-get", map[string]string{"path": "/machine", "property": "type"}, &l.Type); err != nil {
		return l, err
	}
	var buses []argv.Bus
	if err := q.Do(ctx, "query-pci", nil, &buses); err != nil {
		return l, err
	}
	l.Slots = argv.SlotsOf(buses)
	var drives []struct {
		Of       string          `json:"qdev"`
		Inserted json.RawMessage `json:"inserted"`
	}
	if err := q.Do(ctx, "query-block", nil, &drives); err != nil {
		return l, err
	}
	for _, d := range drives {
		l.Empty = l.Empty || strings.HasSuffix(d.Of, argv.SeedDrive) && d.Inserted == nil
	}
	l.Kicks, err = kicks(ctx, q)
	return l, err
}

// kicks reports whether the guest of a machine notifies virtiofsd of each request. The guest of a
// machine started by an earlier version does not.
func kicks(ctx context.Context, q *qmp.Client) (bool, error) {
	const devices = "/machine/peripheral-anon"
	var all []struct{ Name, Type string }
	if err := q.Do(ctx, "qom-list", map[string]string{"path": devices}, &all); err != nil {
		return false, err
	}
	for _, d := range all {
		if d.Type == "child<vhost-user-fs-pci>" {
			var spares bool
			err := q.Do(ctx, "qom-get", map[string]string{"path": devices + "/" + d.Name, "property": "event_idx"}, &spares)
			return !spares, err
		}
	}
	return false, nil
}

// Apply makes a machine that is about to start equal to l, and lets it wait for the state.
func (l machineTraits) Apply(line *argv.Machine) (err error) {
	line.Type, err = argv.MachineType(l.Type)
	line.Slots, line.Disk.Empty, line.Incoming = l.Slots, l.Empty, true
	line.SparesKicks = !l.Kicks
	return err
}
