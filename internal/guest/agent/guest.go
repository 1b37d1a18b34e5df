package agent

import (
	"context"
	"fmt"
	"os/user"
	"strings"

	"orrery/internal/host"
	"orrery/internal/transport/rpc"
)

// guest is the Runner of the machine.
type guest struct{ host.Local }

var _ rpc.Machine = guest{}

// Put writes files. Their owners are users and groups of the machine.
func (p guest) Put(ctx context.Context, files ...host.File) error {
	for _, f := range files {
		owner, err := ids(f.Owner)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		f.Owner = owner
		if err := p.Local.Put(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// ids returns the numeric form of an owner "user:group" or "user". For "user", the group has the
// same name.
func ids(owner string) (string, error) {
	if owner == "" {
		return "", nil
	}
	name, group, ok := strings.Cut(owner, ":")
	if !ok {
		group = name
	}
	uid, gid := name, group
	if !isNumber(name) {
		u, err := user.Lookup(name)
		if err != nil {
			return "", err
		}
		uid = u.Uid
	}
	if !isNumber(group) {
		g, err := user.LookupGroup(group)
		if err != nil {
			return "", err
		}
		gid = g.Gid
	}
	return uid + ":" + gid, nil
}

func isNumber(name string) bool { return name != "" && strings.Trim(name, "0123456789") == "" }
