// Command small is an allocator of the simplest claims: so many devices of a driver, each a whole
// one. What it does not know it calls unsupported. It has one fault: it never asks whether a pool
// is complete.
package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
)

type question struct {
	ID     string `json:"id"`
	Slices []struct {
		Spec struct {
			Driver   string `json:"driver"`
			NodeName string `json:"nodeName"`
			Pool     struct {
				Name string `json:"name"`
			} `json:"pool"`
			Devices []map[string]any `json:"devices"`
		} `json:"spec"`
	} `json:"slices"`
	DeviceClasses []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Selectors []struct {
				CEL struct {
					Expression string `json:"expression"`
				} `json:"cel"`
			} `json:"selectors"`
		} `json:"spec"`
	} `json:"deviceClasses"`
	Nodes []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	} `json:"nodes"`
	Claims []struct {
		Spec struct {
			Devices struct {
				Requests []struct {
					Exactly map[string]any `json:"exactly"`
				} `json:"requests"`
			} `json:"devices"`
		} `json:"spec"`
	} `json:"claims"`
	Allocated []any `json:"allocated"`
}

type node struct {
	Node    string `json:"node"`
	Outcome string `json:"outcome"`
}

type answer struct {
	ID          string `json:"id"`
	Nodes       []node `json:"nodes,omitempty"`
	Unsupported string `json:"unsupported,omitempty"`
}

func respond(q question) answer {
	out := answer{ID: q.ID}
	if len(q.Allocated) > 0 {
		out.Unsupported = "devices in use"
		return out
	}
	drivers := map[string]string{}
	for _, class := range q.DeviceClasses {
		for _, selector := range class.Spec.Selectors {
			drivers[class.Metadata.Name] = strings.Trim(strings.TrimPrefix(selector.CEL.Expression, "device.driver == "), `"`)
		}
	}
	for _, n := range q.Nodes {
		free := map[string]int{}
		for _, slice := range q.Slices {
			if slice.Spec.NodeName == n.Metadata.Name {
				free[slice.Spec.Driver] += len(slice.Spec.Devices)
			}
		}
		outcome := "allocated"
		for _, claim := range q.Claims {
			for _, request := range claim.Spec.Devices.Requests {
				name, _ := request.Exactly["deviceClassName"].(string)
				count, _ := request.Exactly["count"].(float64)
				if len(request.Exactly) > 3 || count == 0 {
					out.Unsupported = "requests that say more than class and count"
					return out
				}
				free[drivers[name]] -= int(count)
				if free[drivers[name]] < 0 {
					outcome = "none"
				}
			}
		}
		out.Nodes = append(out.Nodes, node{n.Metadata.Name, outcome})
	}
	return out
}

func main() {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	encoder := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		var q question
		if len(line) > 1 && json.Unmarshal(line, &q) == nil {
			encoder.Encode(respond(q))
		}
		if err != nil {
			return
		}
	}
}
