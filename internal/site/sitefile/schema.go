package sitefile

import (
	"fmt"
	"slices"
	"strings"

	"orrery/docs"
	"orrery/internal/site"
	"orrery/internal/site/event"
	"orrery/internal/site/params"
	"orrery/internal/site/secretspec"
	"orrery/internal/site/service"
	"orrery/internal/strict"
)

// SiteSchema returns the JSON Schema of site.toml. Keys and types are those of the types in file.go,
// descriptions are the comments of the reference.
func SiteSchema() strict.JSONSchema {
	s := titled("site.toml of Orrery", &siteFile{})
	node := strict.Schema(&nodeTable{})
	property(node, "net")["additionalProperties"] = strict.JSONSchema{"anyOf": []strict.JSONSchema{
		{"type": "string"}, strict.Schema(&interfaceTable{})}}
	property(s, "node")["additionalProperties"] = node
	former := strict.JSONSchema{"deprecated": true}
	for key, value := range property(s, "vethpair") {
		former[key] = value
	}
	s["properties"].(strict.JSONSchema)["cable"] = former // see formerKeys
	refine(s, siteEnums, siteRequired)
	// a table of a file that extends another need not have what the table there has
	s["if"] = strict.JSONSchema{"required": []string{"extends"}}
	s["else"] = strict.JSONSchema{"properties": strict.JSONSchema{"node": strict.JSONSchema{
		"additionalProperties": strict.JSONSchema{"required": []string{"id"}}}}}
	describe(s, docs.SiteFile)
	for key, of := range node["properties"].(strict.JSONSchema) { // defaults has no comments of its own
		if p := property(s, "defaults", key); p != nil && p["description"] == nil {
			if text := of.(strict.JSONSchema)["description"]; text != nil {
				p["description"] = text
			}
		}
	}
	return s
}

// RoleSchema returns the JSON Schema of role.toml.
func RoleSchema() strict.JSONSchema {
	s := titled("role.toml of Orrery", &roleFile{})
	refine(s, roleEnums, roleRequired)
	describe(s, docs.Roles)
	return s
}

func titled(title string, file any) strict.JSONSchema {
	s := strict.Schema(file)
	s["$schema"], s["title"] = "https://json-schema.org/draft/2020-12/schema", title
	property(s, "format")["enum"] = []int{format}
	return s
}

// siteEnums are the keys of site.toml whose values are one of a few words. A "*" stands for a name, and
// a key whose value is a list for its items.
var siteEnums = map[string][]string{
	"node.*.engine": site.Engines, "defaults.engine": site.Engines,
	"node.*.syscalls": site.NodeSyscalls, "defaults.syscalls": site.NodeSyscalls,
	"node.*.vm.model": site.NICModels, "defaults.vm.model": site.NICModels,
	"node.*.vm.pin": {site.PinPerCPU}, "defaults.vm.pin": {site.PinPerCPU},
	"node.*.vm.cache": site.Caches, "defaults.vm.cache": site.Caches, "node.*.vm.disks.cache": site.Caches,
	"node.*.vm.aio": site.AIOs, "defaults.vm.aio": site.AIOs, "node.*.vm.disks.aio": site.AIOs,
	"node.*.xen.type": site.XenTypes, "defaults.xen.type": site.XenTypes,
	"network.*.kind":   networkKinds(),
	"image.*.firmware": site.Firmwares, "image.*.guest": site.Guests, "image.*.bus": site.Buses,
	"service.*.takeover": {service.Fast}, "service.*.active": service.Kinds,
	"group.*.spread": {site.SpreadOverHosts}, "node.*.per": {eachHost},
	"hook.*.on": event.All, "alert.on": event.All,
	"secret.*.format": secretspec.Formats, "secret.*.per": {secretspec.PerNode},
	"backup.before": site.Occasions, "snapshot.before": site.Occasions,
}

var siteRequired = map[string][]string{"": {"site"}, "site": {"name"}}

var roleEnums = map[string][]string{
	"service.when":      {site.Boot, site.Active},
	"step.when":         {site.Build, site.Boot, site.Started, site.Active},
	"param.type":        params.Types,
	"volume.quarantine": {site.CopyEmpty, site.CopySnapshot},
	"volume.from":       {site.FromLayer},
}

var roleRequired = map[string][]string{
	"service": {"name"}, "param": {"name"}, "file": {"path"}, "step": {"when"}, "secret": {"name"},
	"volume": {"name", "path"},
}

func networkKinds() (names []string) {
	for _, k := range site.NetworkKinds {
		names = append(names, k.Name)
	}
	return names
}

// refine adds what the types do not say. It panics if there is no such key, which the tests detect.
func refine(s strict.JSONSchema, enums, required map[string][]string) {
	for _, at := range []struct {
		word  string
		paths map[string][]string
	}{{"enum", enums}, {"required", required}} {
		for path, values := range at.paths {
			p := property(s, strings.FieldsFunc(path, func(c rune) bool { return c == '.' })...)
			if p == nil {
				panic(fmt.Sprintf("no key %s", path))
			}
			if items, ok := p["items"].(strict.JSONSchema); ok {
				p = items
			}
			p[at.word] = values
		}
	}
}

// property returns the schema of a key, or nil if there is none. Names that the user chooses may be
// any word.
func property(s strict.JSONSchema, path ...string) strict.JSONSchema {
	for _, key := range path {
		if items, ok := s["items"].(strict.JSONSchema); ok {
			s = items
		}
		properties, _ := s["properties"].(strict.JSONSchema)
		next, ok := properties[key].(strict.JSONSchema)
		if !ok {
			next, ok = s["additionalProperties"].(strict.JSONSchema)
		}
		if !ok {
			return nil
		}
		s = next
	}
	return s
}

// describe adds the comments of a page of the reference as descriptions. The first comment on a key
// counts.
func describe(s strict.JSONSchema, page string) {
	for _, k := range docs.Keys(page) {
		p := property(s, k.Path...)
		if p != nil && p["description"] == nil && k.Comment != "" && !slices.Contains(k.Path, "") {
			p["description"] = k.Comment
		}
	}
}
