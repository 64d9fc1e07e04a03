//! The trait `Resource` of types that stand for an object of another kind.

/// Implements `Resource` for a type with the parameter `K` as `K` does it, with the metadata in the field `meta`.
macro_rules! impl_resource {
    ($name:ident) => {
        impl<K: kube::Resource> kube::Resource for $name<K> {
            type DynamicType = K::DynamicType;
            type Scope = K::Scope;

            fn kind(dt: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                K::kind(dt)
            }

            fn group(dt: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                K::group(dt)
            }

            fn version(dt: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                K::version(dt)
            }

            fn api_version(dt: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                K::api_version(dt)
            }

            fn plural(dt: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                K::plural(dt)
            }

            fn meta(&self) -> &ObjectMeta {
                &self.meta
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.meta
            }
        }
    };
}
