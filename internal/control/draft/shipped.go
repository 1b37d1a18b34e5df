package draft

import (
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/roles"
)

// A ShippedRole describes a role that ships with Orrery.
type ShippedRole struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Params      []ShippedParam `json:"params"`
	Packages    []string       `json:"packages"`
	Services    []string       `json:"services"`
	Files       []string       `json:"files"`   // their paths on the node
	Volumes     []string       `json:"volumes"` // their names
	Secrets     []string       `json:"secrets"` // which the site must declare
}

// A ShippedParam is a parameter of such a role.
type ShippedParam struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"`
	Required bool     `json:"required"` // it has no default
	Default  any      `json:"default,omitempty"`
	Values   []string `json:"values,omitempty"` // the only ones that are allowed, or none
	Doc      string   `json:"doc"`
}

// ShippedRoles returns all roles that ship with Orrery, in the order of their names.
func ShippedRoles() ([]ShippedRole, error) {
	var all []ShippedRole
	for _, name := range roles.Names() {
		r, err := DescribeShipped(name)
		if err != nil {
			return nil, err
		}
		all = append(all, *r)
	}
	return all, nil
}

// DescribeShipped returns a role that ships with Orrery, by its name with or without "orrery/".
func DescribeShipped(name string) (*ShippedRole, error) {
	r, err := sitefile.ShippedRole(name)
	if err != nil {
		return nil, err
	}
	shown := &ShippedRole{Name: r.Name, Description: r.Description, Params: []ShippedParam{}, Packages: some(r.Apt),
		Services: some(site.ServicesOf([]*site.Role{r})), Files: []string{}, Volumes: []string{}, Secrets: []string{}}
	for _, p := range r.Params {
		shown.Params = append(shown.Params, ShippedParam{Name: p.Name, Type: p.Type, Required: p.Default == nil,
			Default: p.Default, Values: p.Values, Doc: p.Doc})
	}
	for _, f := range r.Files {
		shown.Files = append(shown.Files, f.Path)
	}
	for _, v := range r.Volumes {
		shown.Volumes = append(shown.Volumes, v.Name)
	}
	for _, x := range r.Secrets {
		shown.Secrets = append(shown.Secrets, x.Name)
	}
	return shown, nil
}

// some returns a list that is not nil, so that JSON has [] for it.
func some(list []string) []string { return append([]string{}, list...) }
