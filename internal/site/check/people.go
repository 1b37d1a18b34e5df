package check

import (
	"strconv"

	"orrery/internal/text/pattern"
)

// person matches the name of a user or, with "@" in front, of a group, as useradd(8) and directory
// services accept them.
var person = pattern.New(`^@?[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// checkPeople checks the names of the people who may change the site without being root.
func checkPeople(ix *index, found *findings) {
	for _, list := range []struct {
		table, key string
		names      []string
	}{{"site", "owners", ix.Owners}, {"twin", "members", ix.Twins.Members}} {
		for i, name := range list.names {
			if !person().MatchString(name) {
				found.report(at(list.table, list.key, strconv.Itoa(i)), `write a user name, or "@" and a group name`,
					"%s.%s: %q is not a user or group name", list.table, list.key, name)
			}
		}
	}
	if most := ix.Twins.Most; most < 0 || most > 100 {
		found.report(at("twin", "most"), "0 to 100", "twin.most = %d is out of range", most)
	}
	if expires := ix.Twins.Expires; expires < 0 {
		found.report(at("twin", "expires"), `write a duration such as "24h"`, "twin.expires = %s is negative", expires)
	}
}
