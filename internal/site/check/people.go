package check

import (
	"strconv"

	"orrery/internal/pattern"
)

// person is the name of a user or, behind "@", of a group, as useradd(8) and directories of people take them.
var person = pattern.New(`^@?[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// people are those who may do things to the site without being root.
func (c *checker) people() {
	for _, list := range []struct {
		table, key string
		names      []string
	}{{"site", "owners", c.site.Owners}, {"twin", "members", c.site.Twins.Members}} {
		for i, name := range list.names {
			if !person().MatchString(name) {
				c.wrong(at(list.table, list.key, strconv.Itoa(i)), `the name of a user, or "@" and that of a group`, "%s.%s: %q is nobody's name", list.table, list.key, name)
			}
		}
	}
	if most := c.site.Twins.Most; most < 0 || most > 100 {
		c.wrong(at("twin", "most"), "0 to 100", "twin.most = %d", most)
	}
	if expires := c.site.Twins.Expires; expires < 0 {
		c.wrong(at("twin", "expires"), `a time such as "24h"`, "twin.expires = %s", expires)
	}
}
