package experiment

import (
	"cmp"
	"path/filepath"
	"strings"
	"time"

	"orrery/internal/lab/stats"
	"orrery/internal/problem"
	"orrery/internal/text/pattern"
)

// The default values and the limits of keys.
const (
	defaultRounds    = 10
	defaultMaxRounds = 30
	defaultWidth     = 0.06
	defaultSuite     = "bookworm"

	minRounds = 5 // with fewer rounds there is no interval
	maxRounds = 1000
	minWidth  = 0.001
	maxWidth  = 2

	defaultWaitTimeout = 2 * time.Minute
	maxWaitTimeout     = 24 * time.Hour
)

// validSuite matches the name of a Debian release, as in package site/check.
var validSuite = pattern.New(`^[a-z][a-z0-9-]*$`)

// head fills in everything except settings and tests.
func (r *reading) head() {
	e, f := r.experiment, &r.file
	e.Name = strings.TrimSuffix(filepath.Base(r.path), Suffix)
	if !validName().MatchString(e.Name) {
		r.addMistake(r.root, mistake("experiment name %q, from the name of the file, is invalid",
			e.Name).Try(`rename the file: at most 32 lower case letters, digits and "-"`))
	}
	e.Title, e.Source, e.Dir = cmp.Or(f.Title, e.Name), f.Source, f.Dir
	e.Rounds, e.Width, e.Suite = valueOr(f.Rounds, defaultRounds), valueOr(f.Width, defaultWidth),
		valueOr(f.Suite, defaultSuite)
	e.Components, e.Packages = f.Components, f.Packages
	e.Most = valueOr(f.Most, max(defaultMaxRounds, e.Rounds))
	e.PerInstance = int(valueOr(f.PerInstance, 0))
	e.Quiet, e.Disturbed = time.Duration(valueOr(f.Quiet, waitTimeout(defaultWaitTimeout))),
		valueOr(f.Disturbed, DefaultDisturbed)
	r.require("rounds", e.Rounds >= minRounds && e.Rounds <= maxRounds,
		mistake("rounds = %d is not from %d to %d", e.Rounds, minRounds, maxRounds).
			Try("fewer rounds yield no interval; %d are usual", defaultRounds))
	r.require("most", e.Most >= e.Rounds && e.Most <= maxRounds || r.bad[r.root.At("rounds")],
		mistake("most = %d is not from rounds = %d to %d", e.Most, e.Rounds, maxRounds).
			Try("write most = %d for exactly that many rounds", e.Rounds))
	r.require("rounds_per_instance", e.PerInstance <= maxRounds || e.PerInstance == NeverRecreate,
		mistake("rounds_per_instance = %d is more than %d", e.PerInstance, maxRounds).Try(`write "auto", or remove it`))
	r.require("rounds_per_instance", e.CanDecide() || r.bad[r.root.At("most")] || r.bad[r.root.At("rounds")],
		mistake("rounds_per_instance = %d: most = %d rounds yield fewer than %d instances, too few for any verdict", e.PerInstance,
			e.Most, stats.MinInstances).
			Try(`write rounds_per_instance = 1, or "none" to try an experiment without verdicts`))
	r.require("disturbed", e.Disturbed > 0 && e.Disturbed <= 1,
		mistake("disturbed = %v is not a share above 0 and up to 1", e.Disturbed).
			Try("%v is the default; with 1, figures are judged however busy the host was", DefaultDisturbed))
	r.require("width", e.Width >= minWidth && e.Width <= maxWidth,
		mistake("width = %v is not from %v to %v", e.Width, minWidth, maxWidth).
			Try("0.1 means an interval such as 0.95 to 1.05"))
	r.require("suite", validSuite().MatchString(e.Suite),
		mistake("suite %q is not a Debian release", e.Suite).Try(`write suite = "bookworm"`))
	r.require("dir", e.Dir == "" || filepath.IsAbs(e.Dir) && !strings.ContainsFunc(e.Dir, isSpecial),
		mistake("dir = %q is not an absolute path", e.Dir).
			Try(`write a directory on the disk to be measured, such as "/srv/lab"`))
	if e.Dir != "" {
		e.Dir = filepath.Clean(e.Dir)
	}
}

// require reports a mistake in the value of a key unless ok, or unless there is a mistake already.
func (r *reading) require(key string, ok bool, p *problem.Problem) {
	if at := r.root.At(key); !ok && !r.bad[at] {
		r.addMistake(at, p)
	}
}

// isSpecial reports whether a character of a path has a special meaning for the programs that use the
// path.
func isSpecial(c rune) bool { return c < ' ' || c == 0x7f || strings.ContainsRune(`"'\:,`, c) }

// valueOr returns the written value, or the default if there is none.
func valueOr[T any](written *T, otherwise T) T {
	if written == nil {
		return otherwise
	}
	return *written
}
