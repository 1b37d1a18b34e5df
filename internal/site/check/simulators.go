package check

import "orrery/internal/site"

// simulators checks what stands in twins for nodes and roles, and that it does so nowhere else.
func (c *checker) simulators() {
	for i := range c.site.Nodes {
		if n := &c.site.Nodes[i]; n.SimulatedBy != "" {
			c.simulator(at("node", n.Name, "simulated_by"), "node "+n.Name, n.SimulatedBy)
		}
	}
	simulators := map[string]bool{}
	for i := range c.site.Roles {
		r := &c.site.Roles[i]
		if r.SimulatedBy == "" {
			continue
		}
		key := at("role", r.Name, "simulated_by")
		if r.SimulatedBy == r.Name {
			c.wrong(key, "write a role that does the same without the rest of the world", "role %s is simulated by itself", r.Name)
			continue
		}
		c.simulator(key, "role "+r.Name, r.SimulatedBy)
		simulators[r.SimulatedBy] = true
	}
	for i := range c.site.Nodes {
		if name := c.site.Nodes[i].SimulatedBy; name != "" {
			simulators[name] = true
		}
	}
	if c.site.Production && c.site.Twin == "" && len(simulators) > 0 {
		c.onlyInTwins(simulators)
	}
}

func (c *checker) simulator(key []string, what, name string) {
	r := c.roles[name]
	switch {
	case r == nil:
		c.role(key, name)
	case r.SimulatedBy != "" && r.SimulatedBy != name:
		c.wrong(key, "name the one that a twin shall have", "%s is simulated by role %s, which is itself simulated by %s", what, name, r.SimulatedBy)
	}
}

// onlyInTwins finds nodes of production that have a simulator, be it by need.
func (c *checker) onlyInTwins(simulators map[string]bool) {
	const cure = "use the role that it simulates: simulators are for twins"
	for i := range c.site.Nodes {
		n := &c.site.Nodes[i]
		for k, name := range n.Roles {
			if simulators[name] {
				c.wrong(at("node", n.Name, "roles", k), cure, "node %s of a production site has the simulator %s", n.Name, name)
			}
		}
		for _, r := range c.rolesOf(n.Roles) {
			c.needsNone(r, simulators, cure)
		}
	}
}

func (c *checker) needsNone(r *site.Role, simulators map[string]bool, cure string) {
	if simulators[r.Name] {
		return
	}
	for k, name := range r.NeedsRoles {
		if simulators[name] {
			c.wrong(at("role", r.Name, "needs", "roles", k), cure, "role %s needs the simulator %s and is used on a production site", r.Name, name)
		}
	}
}
