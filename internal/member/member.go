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

// Object is the kind of object that a verb works on.
type Object int

// What verbs work on.
const (
	OnNothing Object = iota // the program itself
	// another verb, for a twin named by the first argument; the other verb is checked separately
	OnInner
	OnHost         // what is on the host
	OnSite         // a site or a twin
	OnNewTwin      // a new twin
	OnExistingTwin // an existing twin, given by name
)

// A rule says who may call a verb, and with which flags.
type rule struct {
	on    Object
	all   bool // every member; otherwise only owners of the site or the twin
	flags []string
}

// commonFlags lists flags of all verbs.
var commonFlags = []string{"help", "json", "site", "twin"}

// rules has all verbs that members may call. It omits flags that read or write a file of the host,
// run a program there, or reach beyond a node or its owner. It also omits verbs that must do any of
// that.
var rules = map[string]rule{
	"":            {on: OnNothing},
	"help":        {on: OnNothing},
	"version":     {on: OnNothing},
	"twin":        {on: OnNothing},
	"release":     {on: OnNothing},
	"twin status": {on: OnInner},
	"twin exec":   {on: OnInner},
	"twin shell":  {on: OnInner},
	"twin ls":     {on: OnHost},

	"status": {on: OnSite, all: true, flags: []string{"watch", "probe", "usage"}},

	"logs":         {on: OnSite, flags: []string{"follow", "lines", "since", "grep", "raw", "release"}},
	"journal":      {on: OnSite, flags: []string{"steps", "runs"}},
	"exec":         {on: OnSite, flags: []string{"user", "raw", "parallel", "timeout", "group", "release"}},
	"shell":        {on: OnSite, flags: []string{"user", "release"}},
	"console":      {on: OnSite, flags: []string{"log", "lines", "raw", "release"}},
	"screen":       {on: OnSite, flags: []string{"release"}},
	"plan":         {on: OnSite, flags: []string{"batch", "probe", "steps"}},
	"stage":        {on: OnSite, flags: []string{"release", "parallel"}},
	"switch":       {on: OnSite, flags: []string{"release", "confirm-within", "confirm-by", "wait", "yes-production"}},
	"rollback":     {on: OnSite, flags: []string{"yes-production"}},
	"confirm":      {on: OnSite},
	"release ls":   {on: OnSite},
	"release show": {on: OnSite},
	"release diff": {on: OnSite},

	// The time that nodes have to shut down is not for members to set, because they would hold the
	// site's lock as long.
	"start":   {on: OnSite, flags: []string{"yes-production"}},
	"stop":    {on: OnSite, flags: []string{"hard", "yes-production"}},
	"restart": {on: OnSite, flags: []string{"hard", "yes-production"}},

	"twin create":  {on: OnNewTwin, flags: []string{"only", "scale", "volumes", "release", "expires", "collapse", "nat"}},
	"twin destroy": {on: OnExistingTwin, flags: []string{"wait"}},
}

// twinRules has additional verbs that the owner of a twin may call for that twin.
var twinRules = map[string]rule{
	"up": {on: OnSite, flags: []string{"batch", "dry-run", "undo", "parallel", "yes"}},
}

// ObjectOf returns what a verb works on when called by a member. It returns false if no member may
// call the verb.
func ObjectOf(verb string) (Object, bool) {
	r, ok := ruleOf(verb)
	return r.on, ok
}

func ruleOf(verb string) (rule, bool) {
	r, ok := rules[verb]
	if !ok {
		r, ok = twinRules[verb]
	}
	return r, ok
}

// CheckCall returns an error if the person may not make a call.
func (p *Person) CheckCall(c Call) error {
	r, ok := ruleOf(c.Verb)
	_, ofSites := rules[c.Verb]
	if !ok {
		return refusedError("orrery %s is for root only", c.Verb).
			Try("ask the administrator of this host; orrery-member --help lists all verbs, docs/members.md those for members")
	}
	for _, flag := range c.Flags {
		if !slices.Contains(commonFlags, flag) && !slices.Contains(r.flags, flag) {
			return refusedError("--%s of orrery %s is for root only", flag, c.Verb).
				Try("leave it out, or ask the administrator of this host")
		}
	}
	switch {
	case r.on == OnNothing || r.on == OnInner || r.on == OnHost:
		return nil
	case c.Site == nil:
		return refusedError("orrery %s needs a site that this host knows", c.Verb)
	case r.on == OnNewTwin:
		return p.checkMayCreate(c.Site)
	case c.Twin != "":
		return p.checkOwner(c)
	case r.on == OnExistingTwin:
		return refusedError("no twin is named")
	case !ofSites:
		return refusedError("orrery %s of site %s is for root only", c.Verb, c.Site.Name).
			Try("stage and switch a release; for a twin of your own, use --twin NAME")
	case r.all || p.In(c.Site.Owners):
		return nil
	}
	return refusedError("%s is not an owner of site %s", p.Name, c.Site.Name).
		Try("%s; owners in [site] of its site.toml lists the owners", askOwnersHint(c.Site.Owners))
}

func (p *Person) checkMayCreate(s *site.Site) error {
	if p.In(s.Twins.Members) || len(s.Twins.Members) == 0 && p.In(s.Owners) {
		return nil
	}
	return refusedError("%s may not create twins of site %s", p.Name, s.Name).
		Try("%s; members in [twin] of its site.toml lists who may", askOwnersHint(s.Owners))
}

// checkOwner returns an error if a call changes a twin of another owner. Members may do with their
// own twins what they may do with any.
func (p *Person) checkOwner(c Call) error {
	if rules[c.Verb].all || c.Owner != "" && c.Owner == p.Name {
		return nil
	}
	return refusedError("twin %s belongs to %s", c.Twin, c.Owner).Try("ask %s, or create a twin of your own", c.Owner)
}

// A TwinRequest is a twin that a person wants to create.
type TwinRequest struct {
	NAT     bool
	Volumes string  // initial content: site.CopyEmpty, site.CopySnapshot, or a program
	Scale   float64 // the largest factor for any limit
	Expires time.Duration
	Has     int // number of twins of the site that the person has already
}

// CheckTwin returns an error if the site does not allow a twin. Otherwise it returns how long the
// twin may exist.
func CheckTwin(rules site.TwinRules, w TwinRequest) (time.Duration, error) {
	switch {
	case w.Volumes != site.CopyEmpty && w.Volumes != site.CopySnapshot:
		return 0, refusedError("--volumes with a program is for root only: it would be run as root").Try("use --volumes empty")
	case w.Volumes == site.CopySnapshot && !rules.Data:
		return 0, refusedError("a member's twin may not have the site's data").
			Try("use --volumes empty, or set data = true in [twin] of the site file")
	case w.NAT && !rules.NAT:
		return 0, refusedError("a member's twin may not use --nat").
			Try("leave it out, or set nat = true in [twin] of the site file")
	case w.Scale > 1:
		return 0, refusedError("a member's twin may not be larger than the site").Try("use a --scale of at most 1")
	case w.Has >= rules.Most:
		return 0, refusedError("a member may have at most %s of this site at a time", humanize.Plural(rules.Most, "twin")).
			Try("orrery-member twin destroy TWIN, or raise most in [twin] of the site file")
	case w.Expires > rules.Expires:
		return 0, refusedError("a member's twin may last %s at most", rules.Expires).
			Try("use --expires %s, or raise expires in [twin] of the site file", rules.Expires)
	case w.Expires <= 0:
		return rules.Expires, nil
	}
	return w.Expires, nil
}

func refusedError(format string, args ...any) *problem.Problem {
	return problem.New(problem.Refused, "%s; nothing was done", fmt.Sprintf(format, args...))
}

// askOwnersHint returns an advice that names the people to ask.
func askOwnersHint(owners []string) string {
	if len(owners) == 0 {
		return "ask the administrator of this host"
	}
	return "ask " + strings.Join(owners, " or ")
}
