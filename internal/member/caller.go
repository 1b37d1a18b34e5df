package member

import (
	"context"
	"os"
	"strconv"
	"strings"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// Caller returns the user who called by sudo. It relies on the user ID in SUDO_UID, which sudo sets
// itself from what the kernel reports, whatever its caller has set. The name and groups are those
// of the host's databases. Caller refuses root, and users whom the configuration does not name.
func Caller(ctx context.Context, in *Configuration) (*Person, error) {
	if os.Geteuid() != 0 {
		return nil, problem.New(problem.Unable, "this program must be run with sudo").Try("run it as orrery-member …")
	}
	uid, err := strconv.Atoi(os.Getenv("SUDO_UID"))
	if err != nil || uid <= 0 {
		return nil, refusedError("sudo does not name the caller").Try("as root, run orrery itself")
	}
	p := &Person{}
	here := host.Local{Name: "host"}
	entry, err := host.Output(ctx, here, host.Command{Args: []string{"getent", "passwd", strconv.Itoa(uid)}}, 64<<10)
	if err != nil {
		return nil, problem.New(problem.Refused, "this host has no user with id %d", uid).Because(err)
	}
	fields := strings.Split(string(entry), ":")
	if len(fields) < 4 || fields[0] == "" || strings.HasPrefix(fields[0], "-") || fields[2] != strconv.Itoa(uid) {
		return nil, refusedError("the account of user %d cannot be read", uid)
	}
	p.Name = fields[0]
	groups, err := host.Output(ctx, here, host.Command{Args: []string{"id", "-Gnz", "--", p.Name}}, 1<<20)
	if err != nil {
		return nil, problem.New(problem.Refused, "the groups of %s cannot be determined", p.Name).Because(err)
	}
	p.Groups = strings.FieldsFunc(string(groups), func(r rune) bool { return r == 0 })
	if !p.In([]string{"@" + in.Members.Group}) {
		return nil, refusedError("%s is not in group %s", p.Name, in.Members.Group).At(in.file).
			Try("ask the administrator of this host")
	}
	return p, nil
}
