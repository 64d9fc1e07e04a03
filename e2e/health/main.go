// Program health prints what GitOps tools make of objects: the status of kstatus, which Flux reads, and the health of
// Argo CD by a script in Lua.
//
// Usage: health SCRIPT.lua < LIST.json. A line for each object of the list: kind, name, kstatus, Argo CD's health.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "health:", err)
		os.Exit(1)
	}
}

func run(arguments []string, input io.Reader, output io.Writer) error {
	if len(arguments) != 1 {
		return fmt.Errorf("usage: health SCRIPT.lua < LIST.json")
	}
	script, err := os.ReadFile(arguments[0])
	if err != nil {
		return err
	}
	text, err := io.ReadAll(input)
	if err != nil {
		return err
	}
	// Of Kubernetes' own reader, which keeps integers as such.
	var list map[string]any
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	items, _ := list["items"].([]any)
	for _, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("an item is no object")
		}
		object := &unstructured.Unstructured{Object: fields}
		result, err := status.Compute(object)
		if err != nil {
			return err
		}
		health, err := argoHealth(string(script), fields)
		if err != nil {
			return err
		}
		fmt.Fprintln(output, object.GetKind(), object.GetName(), result.Status, health)
	}
	return nil
}

// argoHealth runs a health script as Argo CD does: the object is the global obj, and a table with status is returned.
func argoHealth(script string, object map[string]any) (string, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	state.Push(state.NewFunction(lua.OpenBase))
	state.Call(0, 0)
	state.SetGlobal("obj", toLua(state, object))
	if err := state.DoString(script); err != nil {
		return "", err
	}
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return "", fmt.Errorf("the script returns no table")
	}
	return lua.LVAsString(result.RawGetString("status")), nil
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, element := range value {
			table.RawSetString(key, toLua(state, element))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, element := range value {
			table.Append(toLua(state, element))
		}
		return table
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	default:
		return lua.LNil
	}
}
