package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Mirror is a directory of a volume and the place that it is copied to.
type Mirror struct {
	Volume string
	Node   string // name of its directory
	From   string
	To     string // directory, or [user@]host:directory, reached over SSH
	Every  time.Duration
}

// Mirrors returns the mirrors of a site: for each volume with a mirror, the directory of each node,
// copied to a directory below the target. A twin has no mirrors, since its data is a copy and must
// not overwrite that of the original.
func Mirrors(dirs host.Dirs, s *site.Site) ([]Mirror, error) {
	if s.Twin != "" {
		return nil, nil
	}
	var all []Mirror
	seen := map[string]bool{}
	maker := spec.NewBuilder(s)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		spelt, err := maker.Node(n)
		if err != nil {
			return nil, err
		}
		for _, m := range spelt.Mounts {
			v := s.Volume(m.Volume)
			from := Path(dirs, s.Key(), n.Name, m)
			if v.Mirror == "" || m.Copy != "" || seen[from] {
				continue
			}
			if !absolute(v.Mirror) {
				return nil, problem.New(problem.Mistake,
					"volume %s: mirror = %q is neither an absolute path nor a directory on another host", v.Name, v.Mirror).
					At("site.toml").Try(`write mirror = "user@host:/directory"`)
			}
			seen[from] = true
			each := Mirror{v.Name, n.Name, from, strings.TrimRight(v.Mirror, "/") + "/" + n.Name, v.Every}
			if m.Shared {
				each.Node, each.To = SharedDir, v.Mirror
			}
			all = append(all, each)
		}
	}
	return all, nil
}

func absolute(target string) bool {
	if place, dir, remote := strings.Cut(target, ":"); remote && place != "" && !strings.Contains(place, "/") {
		return strings.HasPrefix(dir, "/") && !strings.HasPrefix(place, "-")
	}
	return strings.HasPrefix(target, "/")
}

// ssh never prompts, since no user is there to answer. Host keys are checked according to the
// user's SSH configuration.
const ssh = "ssh -o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=20 -o ServerAliveCountMax=3"

// rsyncTimeout is how long rsync waits for the other side to send or receive anything.
const rsyncTimeout = 5 * time.Minute

// arguments returns the command line of rsync(1). It keeps all attributes of files, and compares
// times to the nanosecond. Devices are left out, since a device file made by a node would open a
// disk of the mirror's host. If the remote user is not root and so cannot set owners, rsync stores
// them beside the files, and the same option restores them from there.
func (m Mirror) arguments(more ...string) []string {
	args := append([]string{"rsync", "-aHAXS", "--numeric-ids", "--no-devices", "--modify-window=-1", "--mkpath",
		"--timeout=" + strconv.Itoa(int(rsyncTimeout.Seconds()))}, more...)
	if place, _, remote := strings.Cut(m.To, ":"); remote && !strings.Contains(place, "/") {
		args = append(args, "-e", ssh)
		if user, _, named := strings.Cut(place, "@"); named && user != "root" {
			args = append(args, "--remote-option=--fake-super")
		}
	}
	return append(args, "--", m.From+"/", m.To+"/")
}

// Run copies new and changed files. Files removed from the volume stay in the mirror, so that an
// archive does not lose them with the original.
func (m Mirror) Run(ctx context.Context) (sent int64, err error) { return m.copy(ctx) }

// Repair copies all files whose contents differ, whatever their sizes and times. A file that decays
// in the mirror keeps its size and time. Mend reads all data on both sides.
func (m Mirror) Repair(ctx context.Context) (sent int64, err error) { return m.copy(ctx, "--checksum") }

func (m Mirror) copy(ctx context.Context, more ...string) (sent int64, err error) {
	if err := m.checkAvailable(); err != nil {
		return 0, err
	}
	if m.isLocal() {
		if err := os.MkdirAll(m.To, 0o700); err != nil {
			return 0, problem.New(problem.Failed, "the mirror of volume %s of %s cannot be created", m.Volume, m.Node).At(m.To).
				Because(err)
		}
	}
	out, err := m.rsync(ctx, append(more, "--partial-dir=.rsync-partial", "--stats", "--no-human-readable")...)
	return parseSentBytes(out), err
}

func (m Mirror) checkAvailable() error {
	if _, err := os.Stat(m.From); err != nil {
		return problem.New(problem.Failed, "volume %s of %s is missing", m.Volume, m.Node).At(m.From).
			Try("create it with orrery up")
	}
	if m.isLocal() && strings.HasPrefix(filepath.Clean(m.To)+"/", filepath.Clean(m.From)+"/") {
		return problem.New(problem.Mistake, "volume %s cannot be mirrored into itself", m.Volume).At(m.To)
	}
	return nil
}

// rsync runs rsync(1). As root, it follows paths through a tree that nodes change meanwhile, so it
// is confined to the directories of shut.
func (m Mirror) rsync(ctx context.Context, more ...string) (string, error) {
	const maxOutputBytes = 64 << 20 // for the names of files that differ
	var out []byte
	err := withIsolatedDirs(m.isolatedDirs(), func() (err error) {
		out, err = host.Output(ctx, host.Local{Name: "host"},
			host.Command{Args: m.arguments(more...), Env: []string{"LC_ALL=C"}}, maxOutputBytes)
		return err
	})
	var p *problem.Problem
	if errors.As(err, &p) {
		return "", p
	}
	var ran *host.RunError
	if errors.As(err, &ran) && ran.Status == 24 {
		err = nil // files vanished while they were copied, because the volume is in use
	}
	if err != nil {
		return "", problem.New(problem.Failed, "volume %s of %s: rsync with its mirror %s failed", m.Volume, m.Node, m.To).
			Because(err).Try("%s", m.cure(ran))
	}
	return string(out), nil
}

// isolatedDirs returns the directories to which rsync is confined: the volume and, if it is on this host,
// the mirror, which also contains what nodes have written.
func (m Mirror) isolatedDirs() []isolatedDir {
	dirs := []isolatedDir{{dir: m.From, readOnly: true}}
	if _, err := os.Stat(m.To); err == nil && m.isLocal() {
		dirs = append(dirs, isolatedDir{dir: m.To})
	}
	return dirs
}

// isLocal reports whether the mirror is on this host.
func (m Mirror) isLocal() bool { return strings.HasPrefix(m.To, "/") }

func (m Mirror) cure(ran *host.RunError) string {
	place, _, remote := strings.Cut(m.To, ":")
	switch {
	case ran == nil:
		return "try again"
	case ran.Status == -1:
		return "apt-get install rsync openssh-client"
	case remote && (ran.Status == 255 || ran.Status == 12): // whichever of ssh and rsync is noticed first to end
		return "make sure that root can log in with a key and a known host key: ssh -o BatchMode=yes " + place + " true"
	}
	return "see exit status " + strconv.Itoa(ran.Status) + " in rsync(1)"
}

// parseSentBytes returns the number of bytes of files sent, from rsync's statistics.
func parseSentBytes(stats string) int64 {
	for line := range strings.Lines(stats) {
		if text, ok := strings.CutPrefix(line, "Total transferred file size: "); ok {
			number, _, _ := strings.Cut(strings.ReplaceAll(text, ",", ""), " ")
			n, _ := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
			return n
		}
	}
	return 0
}
