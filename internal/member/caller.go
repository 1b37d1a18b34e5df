package member

import (
	"context"
	"os"
	"strconv"
	"strings"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// Caller tells who has called by sudo. That is by the number which sudo sets itself, whatever its
// caller has set, and which it has from the kernel; name and groups are what the host's own
// databases have of that number. Root is not let in by this way, nor is anybody whom the
// configuration does not name.
func Caller(ctx context.Context, in *Configuration) (*Person, error) {
	if os.Geteuid() != 0 {
		return nil, problem.New(problem.Unable, "this program must be called by sudo").Try("orrery-member …")
	}
	uid, err := strconv.Atoi(os.Getenv("SUDO_UID"))
	if err != nil || uid <= 0 {
		return nil, refused("sudo does not say who called").Try("as root, call orrery itself")
	}
	p := &Person{}
	here := host.Local{Name: "host"}
	entry, err := host.Output(ctx, here, host.Command{Args: []string{"getent", "passwd", strconv.Itoa(uid)}}, 64<<10)
	if err != nil {
		return nil, problem.New(problem.Refused, "this host has no user with id %d", uid).Because(err)
	}
	fields := strings.Split(string(entry), ":")
	if len(fields) < 4 || fields[0] == "" || strings.HasPrefix(fields[0], "-") || fields[2] != strconv.Itoa(uid) {
		return nil, refused("what this host knows of user %d cannot be read", uid)
	}
	p.Name = fields[0]
	groups, err := host.Output(ctx, here, host.Command{Args: []string{"id", "-Gnz", "--", p.Name}}, 1<<20)
	if err != nil {
		return nil, problem.New(problem.Refused, "the groups of %s cannot be determined", p.Name).Because(err)
	}
	p.Groups = strings.FieldsFunc(string(groups), func(r rune) bool { return r == 0 })
	if !p.In([]string{"@" + in.Members.Group}) {
		return nil, refused("%s is not in group %s", p.Name, in.Members.Group).At(in.file).
			Try("ask whoever administers this host")
	}
	return p, nil
}
