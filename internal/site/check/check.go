// Package check has the rules that a site must keep. It does no I/O and knows no file: a mistake
// says by its key what it is about, and whoever has read the site from somewhere knows where that
// is written.
package check

import (
	"fmt"
	"iter"

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

// A check finds the mistakes of one subject.
type check func(*index, *findings)

// checks are all checks of a site, in the order in which their mistakes are told. A new check goes
// into the file of its subject and is named here. What holds for each role by itself is in
// checkRoles, for each node in checkNodes.
var checks = []check{
	checkSiteName, checkPeople, checkHooks, checkHosts, checkNetworks, checkOverlaps, checkVethPairs, checkImages,
	checkMirror,
	checkVolumes, checkSecrets, checkReleases, checkGroups, checkNodeNames, checkIDs, checkNumbers, checkNodes,
	checkAddresses, checkIPv6,
	checkInterfaces, checkVars, checkRoles, checkRoleCycles, checkRoleSecrets, checkRestarts, checkRolesTogether,
	checkRequirements,
	checkPips, checkWaits, checkSimulators, checkTests, checkVariants,
}

// Check returns every mistake in a site. It takes a time that is proportional to the size of the site.
func Check(s *site.Site) []Mistake {
	ix, found := newIndex(s), newFindings()
	for _, check := range checks {
		check(ix, found)
	}
	return found.mistakes
}

// at makes a key.
func at(parts ...any) []string {
	key := make([]string, len(parts))
	for i, part := range parts {
		key[i] = fmt.Sprint(part)
	}
	return key
}

// atNode makes the key of something that a node says.
func atNode(n *site.Node, parts ...any) []string {
	return append([]string{"node", n.Name}, at(parts...)...)
}

// each returns the elements of a list by their addresses.
func each[T any](list []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range list {
			if !yield(&list[i]) {
				return
			}
		}
	}
}

func names[T any](list []T, name func(*T) string) []string {
	all := make([]string, 0, len(list))
	for one := range each(list) {
		all = append(all, name(one))
	}
	return all
}

func set(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// count returns how many of some things are so.
func count(all ...bool) (n int) {
	for _, one := range all {
		if one {
			n++
		}
	}
	return n
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
