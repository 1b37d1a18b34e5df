// Package member decides what users other than root may do. It reads the host's configuration and
// identifies the user behind sudo.
//
// Sudo lets the members of a group run one command line as root, packaging/orrery-member. It calls
// this program, which then allows only what is listed here. Everything that is not allowed by name
// is refused.
package member

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// A Person is the user who called.
type Person struct {
	Name   string
	Groups []string // names of groups
}

// In reports whether a list names the person. The list has users and, after "@", groups.
func (p *Person) In(list []string) bool {
	return slices.ContainsFunc(list, func(name string) bool {
		if group, ok := strings.CutPrefix(name, "@"); ok {
			return slices.Contains(p.Groups, group)
		}
		return name == p.Name
	})
}

// A Call describes what a person wants to do. Root has brought up the site on this host, from a
// directory that only root can write to.
type Call struct {
	Verb  string // such as "twin create"
	Flags []string
	Site  *site.Site
	Twin  string // name of the twin, or "" for the site itself
	Owner string // owner of the twin
}

// On is the kind of object that a verb works on.
type On int

// What verbs work on.
const (
	Nothing On = iota // the program itself
	Inner             // another verb, for a twin named by the first argument; the other verb is checked separately
	Host              // what is on the host
	Site              // a site or a twin
	NewTwin           // a new twin
	OldTwin           // an existing twin, given by name
)

// A rule says who may call a verb, and with which flags.
type rule struct {
	on    On
	all   bool // every member; otherwise only owners of the site or the twin
	flags []string
}

// everywhere lists flags of all verbs.
var everywhere = []string{"help", "json", "site", "twin"}

// rules has all verbs that members may call. It omits flags that read or write a file of the host,
// run a program there, or reach beyond a node or its owner. It also omits verbs that must do any of
// that.
var rules = map[string]rule{
	"":            {on: Nothing},
	"help":        {on: Nothing},
	"version":     {on: Nothing},
	"twin":        {on: Nothing},
	"release":     {on: Nothing},
	"twin status": {on: Inner},
	"twin exec":   {on: Inner},
	"twin shell":  {on: Inner},
	"twin ls":     {on: Host},

	"status": {on: Site, all: true, flags: []string{"watch", "probe", "usage"}},

	"logs":         {on: Site, flags: []string{"follow", "lines", "raw", "release"}},
	"journal":      {on: Site, flags: []string{"steps", "runs"}},
	"exec":         {on: Site, flags: []string{"user", "raw", "parallel", "timeout", "group", "release"}},
	"shell":        {on: Site, flags: []string{"user", "release"}},
	"console":      {on: Site, flags: []string{"log", "lines", "raw", "release"}},
	"screen":       {on: Site, flags: []string{"release"}},
	"plan":         {on: Site, flags: []string{"batch", "probe"}},
	"stage":        {on: Site, flags: []string{"release", "parallel"}},
	"switch":       {on: Site, flags: []string{"release", "confirm-within", "confirm-by", "wait", "yes-production"}},
	"rollback":     {on: Site, flags: []string{"yes-production"}},
	"confirm":      {on: Site},
	"release ls":   {on: Site},
	"release show": {on: Site},
	"release diff": {on: Site},

	"twin create":  {on: NewTwin, flags: []string{"only", "scale", "volumes", "release", "expires", "collapse", "nat"}},
	"twin destroy": {on: OldTwin, flags: []string{"wait"}},
}

// ofTwins has additional verbs that the owner of a twin may call for that twin.
var ofTwins = map[string]rule{
	"up":    {on: Site, flags: []string{"batch", "dry-run", "undo", "parallel"}},
	"start": {on: Site, flags: []string{"parallel"}},
	"stop":  {on: Site, flags: []string{"parallel"}},

	"restart": {on: Site, flags: []string{"hard"}},
}

// Works returns what a verb works on when called by a member. It returns false if no member may
// call the verb.
func Works(verb string) (On, bool) {
	r, ok := ruleOf(verb)
	return r.on, ok
}

func ruleOf(verb string) (rule, bool) {
	r, ok := rules[verb]
	if !ok {
		r, ok = ofTwins[verb]
	}
	return r, ok
}

// May returns an error if the person may not make a call.
func (p *Person) May(c Call) error {
	r, ok := ruleOf(c.Verb)
	_, ofSites := rules[c.Verb]
	if !ok {
		return refused("orrery %s is for root only", c.Verb).
			Try("ask whoever administers this host; orrery-member --help lists all verbs, docs/operations.md those for members")
	}
	for _, flag := range c.Flags {
		if !slices.Contains(everywhere, flag) && !slices.Contains(r.flags, flag) {
			return refused("--%s of orrery %s is for root only", flag, c.Verb).
				Try("leave it out, or ask whoever administers this host")
		}
	}
	switch {
	case r.on == Nothing || r.on == Inner || r.on == Host:
		return nil
	case c.Site == nil:
		return refused("orrery %s needs a site that is known here", c.Verb)
	case r.on == NewTwin:
		return p.mayMake(c.Site)
	case c.Twin != "":
		return p.mayTouch(c)
	case r.on == OldTwin:
		return refused("no twin is named")
	case !ofSites:
		return refused("orrery %s of site %s is for root only", c.Verb, c.Site.Name).
			Try("stage and switch a release; for a twin of your own, use --twin NAME")
	case r.all || p.In(c.Site.Owners):
		return nil
	}
	return refused("%s is not an owner of site %s", p.Name, c.Site.Name).
		Try("%s; owners in [site] of its site.toml says who is", ask(c.Site.Owners))
}

func (p *Person) mayMake(s *site.Site) error {
	if p.In(s.Twins.Members) || len(s.Twins.Members) == 0 && p.In(s.Owners) {
		return nil
	}
	return refused("%s may make no twins of site %s", p.Name, s.Name).
		Try("%s; members in [twin] of its site.toml says who may", ask(s.Owners))
}

// mayTouch returns an error if a call changes a twin of another owner. Members may do with their
// own twins what they may do with any.
func (p *Person) mayTouch(c Call) error {
	if rules[c.Verb].all || c.Owner != "" && c.Owner == p.Name {
		return nil
	}
	return refused("twin %s belongs to %s", c.Twin, c.Owner).Try("ask %s, or make one of your own", c.Owner)
}

// A Wish is a twin that a person wants to create.
type Wish struct {
	NAT     bool
	Volumes string  // initial content: site.Empty, site.Snapshot, or a program
	Scale   float64 // the largest factor for any limit
	Expires time.Duration
	Has     int // number of twins of the site that the person has already
}

// MayHave returns an error if the site does not allow a twin. Otherwise it returns how long the
// twin may exist.
func MayHave(rules site.TwinRules, w Wish) (time.Duration, error) {
	switch {
	case w.Volumes != site.Empty && w.Volumes != site.Snapshot:
		return 0, refused("--volumes with a program is for root only: it would be run as root").Try("--volumes empty")
	case w.Volumes == site.Snapshot && !rules.Data:
		return 0, refused("a member's twin may not have the site's data").
			Try("--volumes empty, or data = true in [twin] of the site file")
	case w.NAT && !rules.NAT:
		return 0, refused("a member's twin may not use --nat").
			Try("leave it out, or set nat = true in [twin] of the site file")
	case w.Scale > 1:
		return 0, refused("a member's twin may not be larger than the site").Try("--scale with at most 1")
	case w.Has >= rules.Most:
		return 0, refused("a member may have at most %s of this site at a time", humanize.Count(rules.Most, "twin")).
			Try("orrery-member twin destroy TWIN, or most in [twin] of the site file")
	case w.Expires > rules.Expires:
		return 0, refused("a member's twin may last %s at most", rules.Expires).
			Try("--expires %s, or expires in [twin] of the site file", rules.Expires)
	case w.Expires <= 0:
		return rules.Expires, nil
	}
	return w.Expires, nil
}

func refused(format string, args ...any) *problem.Problem {
	return problem.New(problem.Refused, "%s; nothing was done", fmt.Sprintf(format, args...))
}

// ask returns an advice that names the people to ask.
func ask(owners []string) string {
	if len(owners) == 0 {
		return "ask whoever administers this host"
	}
	return "ask " + strings.Join(owners, " or ")
}
