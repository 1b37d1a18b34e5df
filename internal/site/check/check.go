// Package check has the rules that every site must follow. It does no I/O and knows no files. An
// Issue names its subject by a key, and the caller that read the site knows where the key is
// written.
package check

import (
	"fmt"
	"iter"

	"orrery/internal/problem"
	"orrery/internal/site"
)

// An Issue is one error in a site.
type Issue struct {
	// Key is the subject: "node", NAME, "cpus"; "role", NAME, "file", "2", "path"; or
	// "requirements", FILE, LINE.
	Key   []string
	What  string // includes the offending value
	Cure  string
	Other []string // the key of a second subject of the mistake, or nil
	// Written replaces What if the key itself is written in a file. It is "" if What applies in
	// either case.
	Written string
}

// A check reports the mistakes of one subject.
type check func(*index, *findings)

// checks are all checks of a site, in the order in which they report mistakes. A new check goes
// into the file of its subject and is listed here. Rules for a single role are in checkRoles, rules
// for a single node in checkNodes.
var checks = []check{
	checkSiteName, checkPeople, checkHooks, checkBackup, checkSnapshot, checkWatch, checkHosts,
	checkNetworks, checkOverlaps, checkVethPairs, checkImages,
	checkMirror,
	checkVolumes, checkSecrets, checkReleases, checkGroups, checkNodeNames, checkIDs, checkNumbers, checkNodes,
	checkAddresses, checkIPv6,
	checkInterfaces, checkTraffic, checkPublish, checkServices, checkActive,
	checkVars, checkSettings, checkRoles, checkHealthOfNodes, checkRoleCycles, checkRoleSecrets, checkRestarts,
	checkRolesTogether, checkRequirements,
	checkPips, checkWaits, checkSimulators, checkTests, checkVariants,
}

// Check returns every mistake in a site. Its running time is proportional to the size of the site.
func Check(s *site.Site) []Issue {
	ix, found := newIndex(s), newFindings()
	for _, check := range checks {
		check(ix, found)
	}
	return found.mistakes
}

// at returns the key that consists of parts.
func at(parts ...any) []string {
	key := make([]string, len(parts))
	for i, part := range parts {
		key[i] = fmt.Sprint(part)
	}
	return key
}

// atNode returns the key of a setting of a node.
func atNode(n *site.Node, parts ...any) []string {
	return append([]string{"node", n.Name}, at(parts...)...)
}

// each iterates over pointers to the elements of list.
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

func toSet(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// countTrue returns how many of its arguments are true.
func countTrue(all ...bool) (n int) {
	for _, one := range all {
		if one {
			n++
		}
	}
	return n
}

// sentence returns the words in the form "a, b or c".
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
		text += problem.Truncate(word, 200)
	}
	return text
}
