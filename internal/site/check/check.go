// Package check has the rules that a site must keep. It does no I/O and knows no file: a mistake
// says by its key what it is about, and whoever has read the site from somewhere knows where that
// is written.
package check

import (
	"fmt"

	"orrery/internal/problem"
	"orrery/internal/site"
)

// A Mistake is one thing that is wrong with a site.
type Mistake struct {
	Key   []string // what is wrong: "node", NAME, "cpus"; "role", NAME, "file", "2", "path"; "requirements", FILE, LINE
	What  string   // with the offending value
	Cure  string
	Other []string // the key of another thing that has to do with it, if any
	// Written is told in place of What where the key itself is written; "": What is.
	Written string
}

// Check tells every mistake in a site. It takes a time that is proportional to the size of the site.
func Check(s *site.Site) []Mistake {
	c := newChecker(s)
	for _, rule := range []func(){
		c.siteNames, c.people, c.hooks, c.hosts, c.networks, c.overlaps, c.vethPairs, c.images, c.mirror, c.volumes, c.secrets, c.releases, c.groups,
		c.nodeNames, c.ids, c.numbers, c.nodes, c.addresses, c.sixes, c.interfaces, c.vars,
		c.allRoles, c.roleCycles, c.roleSecrets, c.restarts, c.together, c.requirements, c.pips, c.waits, c.simulators, c.tests, c.variants,
	} {
		rule()
	}
	return c.mistakes
}

// allRoles checks each role by itself.
func (c *checker) allRoles() {
	for i := range c.site.Roles {
		for _, rule := range []func(*site.Role){
			c.roleWords, c.roleNeeds, c.roleFiles, c.roleSteps, c.roleChanges, c.roleVolumes, c.roleHealth,
		} {
			rule(&c.site.Roles[i])
		}
	}
}

func newChecker(s *site.Site) *checker {
	c := &checker{site: s, closures: map[string][]*site.Role{}, roles: map[string]*site.Role{}, nearby: map[[2]string]string{}, kinds: map[string]site.NetworkKind{}, taken: map[function]string{}}
	for i := range s.Roles {
		c.roles[s.Roles[i].Name] = &s.Roles[i]
	}
	for i := range s.Networks {
		c.kinds[s.Networks[i].Name] = site.KindOf(s.Networks[i].Kind)
	}
	c.used = c.usedRoles()
	return c
}

type checker struct {
	site     *site.Site
	mistakes []Mistake
	roles    map[string]*site.Role
	closures map[string][]*site.Role     // see rolesOf
	used     map[string]bool             // roles that some node has
	kinds    map[string]site.NetworkKind // of networks, by name
	drivesOf map[[2]string]string        // nodes whose disks they are, by host and path
	nearby   map[[2]string]string        // see nearest
	taken    map[function]string         // which node has a function of the PCI bus
}

// maxMistakes bounds what is found: of ten thousand nodes each may have the same.
const maxMistakes = 10_000

func (c *checker) add(m Mistake) {
	if len(c.mistakes) < maxMistakes {
		m.What, m.Cure = problem.Short(m.What, 2000), problem.Short(m.Cure, 2000)
		c.mistakes = append(c.mistakes, m)
	}
}

// wrong adds a mistake whose cure is the last argument.
func (c *checker) wrong(key []string, cure, what string, args ...any) {
	if len(c.mistakes) >= maxMistakes {
		return
	}
	for i := range args {
		if text, ok := args[i].(string); ok {
			args[i] = problem.Short(text, 200)
		}
	}
	c.add(Mistake{Key: key, What: fmt.Sprintf(what, args...), Cure: cure})
}

// maxSought bounds for how many names the nearest is sought, which takes a while among many.
const maxSought = 50

// nearest is problem.Nearest, computed once for each name of a kind: ten thousand nodes may have the same mistake.
func (c *checker) nearest(kind, name string, known []string) string {
	key := [2]string{kind, name}
	nearest, ok := c.nearby[key]
	if !ok && len(c.nearby) < maxSought {
		nearest = problem.Nearest(name, known)
		c.nearby[key] = nearest
	}
	return nearest
}

// unknown adds the mistake of a name that is declared nowhere.
func (c *checker) unknown(key []string, kind, name string, known []string) {
	if len(c.mistakes) >= maxMistakes {
		return
	}
	cure := fmt.Sprintf("declare [%s.%s]", kind, problem.Short(name, 200))
	if nearest := c.nearest(kind, name, known); nearest != "" {
		cure = fmt.Sprintf("did you mean %q?", nearest)
	} else if len(known) > 0 && len(known) <= 8 {
		cure += " or use " + sentence(known)
	}
	c.wrong(key, cure, "%s %q is not declared", kind, name)
}

// at makes a key.
func at(parts ...any) []string {
	key := make([]string, len(parts))
	for i, part := range parts {
		key[i] = fmt.Sprint(part)
	}
	return key
}

func names[T any](list []T, name func(*T) string) []string {
	all := make([]string, len(list))
	for i := range list {
		all[i] = name(&list[i])
	}
	return all
}

// sentence returns "a, b or c".
func sentence(words []string) string {
	text := ""
	for i, word := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			text += " or "
		default:
			text += ", "
		}
		text += problem.Short(word, 200)
	}
	return text
}
